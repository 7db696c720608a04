"""The actor as a vector: what is written is read, and the critic stays out of it."""

import torch

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.actor_parameters import ActorParameters
from parnassus.reinforcement.environments import Continuous, Discrete


def test_what_is_written_is_read_and_the_critic_stays() -> None:
    torch.manual_seed(0)
    model, x = ActorCritic(3, Continuous((-1.0,), (1.0,)), hidden=(5,), num_learners=2), torch.randn(2, 7, 3)
    actor = ActorParameters(model)
    values, before = model.values(x), actor.read()
    assert before.shape == (2, 3 * 5 + 5 + 5 + 1 + 1)
    moved = before.clone()
    moved[1] += torch.randn_like(moved[1])
    laws = [model.distribution(x)]
    actor.write(moved)
    laws.append(model.distribution(x))
    assert torch.equal(actor.read(), moved)
    assert torch.equal(model.values(x), values)
    assert torch.equal(laws[0].mode()[0], laws[1].mode()[0])
    assert not torch.equal(laws[0].mode()[1], laws[1].mode()[1])


def test_slopes_are_differences() -> None:
    torch.manual_seed(0)
    model, x = ActorCritic(3, Discrete(2), hidden=(4,), num_learners=2).double(), torch.randn(2, 7, 3).double()
    actor = ActorParameters(model)
    action = torch.randint(2, (2, 7))
    slope, before = actor.gradient(model.distribution(x).log_prob(action).sum()), actor.read()
    for weight in (0, 11, 20):
        at = []
        for sign in (1, -1):
            shifted = before.clone()
            shifted[0, weight] += sign * 1e-5
            actor.write(shifted)
            at.append(model.distribution(x).log_prob(action).sum().item())
        assert abs((at[0] - at[1]) / 2e-5 - float(slope[0, weight])) < 1e-7
