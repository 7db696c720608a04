"""An actor and a critic: together what they are apart, and independent of each other and of other learners."""

from copy import deepcopy

import pytest
import torch

from parnassus.reinforcement.agents.action_distributions import Categorical, DiagonalGaussian
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.environments import Continuous, Discrete


@pytest.mark.parametrize("normalize", [False, True])
def test_together_is_apart(normalize: bool) -> None:
    model = ActorCritic(4, Discrete(2), num_learners=3, normalize_observations=normalize)
    if model.observation_statistics is not None:
        model.observation_statistics.update(3 * torch.randn(3, 100, 4) + 1)
    x = torch.randn(3, 7, 4)
    law, values = model(x)
    alone = model.distribution(x)
    assert isinstance(law, Categorical)
    assert isinstance(alone, Categorical)
    assert torch.allclose(law.logits, alone.logits, atol=1e-6)
    assert torch.allclose(values, model.values(x), atol=1e-6)
    assert values.shape == (3, 7)


def test_weights_may_be_exchanged() -> None:
    model, other = (ActorCritic(4, Discrete(2), num_learners=3) for _ in range(2))
    x = torch.randn(3, 7, 4)
    called = torch.func.functional_call(model, dict(other.named_parameters()), x)
    assert torch.equal(called[0].logits, other(x)[0].logits)
    assert torch.equal(called[1], other(x)[1])
    model.load_state_dict(deepcopy(other.state_dict()), assign=True)
    assert torch.equal(model.values(x), other.values(x))


def test_the_actor_begins_undecided() -> None:
    law, _ = ActorCritic(4, Discrete(3))(torch.randn(1, 50, 4))
    assert float(law.entropy().detach().min()) > 1.09  # of log 3 = 1.0986


def test_directions_have_a_spread() -> None:
    law, _ = ActorCritic(3, Continuous((-2.0, -1.0), (2.0, 1.0)), num_learners=2)(torch.randn(2, 5, 3))
    assert isinstance(law, DiagonalGaussian)
    assert law.sample().shape == (2, 5, 2)


def test_the_value_error_moves_the_critic_alone() -> None:
    model = ActorCritic(4, Discrete(2), num_learners=2)
    model(torch.randn(2, 5, 4))[1][0].square().sum().backward()
    slope = next(model.hidden.parameters()).grad
    assert slope is not None
    moved = slope.flatten(1).norm(dim=1)
    assert (moved > 0).tolist() == [False, False, True, False]  # actors, then critics
