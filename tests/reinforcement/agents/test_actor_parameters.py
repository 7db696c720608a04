"""Parameters and gradients of the actor as one vector per learner."""

import torch

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.actor_parameters import ActorParameters
from parnassus.reinforcement.environments import Continuous, Discrete


def test_write_read_round_trip_leaves_the_critic_unchanged() -> None:
    torch.manual_seed(0)
    model, x = ActorCritic(3, Continuous((-1.0,), (1.0,)), hidden=(5,), num_learners=2), torch.randn(2, 7, 3)
    actor = ActorParameters(model)
    values, before = model.values(x), actor.read()
    assert before.shape == (2, 3 * 5 + 5 + 5 + 1 + 1)
    changed = before.clone()
    changed[1] += torch.randn_like(changed[1])
    distributions = [model.distribution(x)]
    actor.write(changed)
    distributions.append(model.distribution(x))
    assert torch.equal(actor.read(), changed)
    assert torch.equal(model.values(x), values)
    assert torch.equal(distributions[0].mode()[0], distributions[1].mode()[0])
    assert not torch.equal(distributions[0].mode()[1], distributions[1].mode()[1])


def test_gradient_matches_finite_differences() -> None:
    torch.manual_seed(0)
    model, x = ActorCritic(3, Discrete(2), hidden=(4,), num_learners=2).double(), torch.randn(2, 7, 3).double()
    actor = ActorParameters(model)
    action = torch.randint(2, (2, 7))
    gradient, before = actor.gradient(model.distribution(x).log_prob(action).sum()), actor.read()
    for weight in (0, 11, 20):
        log_probs = []
        for sign in (1, -1):
            shifted = before.clone()
            shifted[0, weight] += sign * 1e-5
            actor.write(shifted)
            log_probs.append(model.distribution(x).log_prob(action).sum().item())
        assert abs((log_probs[0] - log_probs[1]) / 2e-5 - float(gradient[0, weight])) < 1e-7
