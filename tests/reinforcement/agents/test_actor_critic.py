"""Actor-critic networks of several learners."""

from copy import deepcopy

import pytest
import torch

from parnassus.reinforcement.agents.action_distributions import Categorical, DiagonalGaussian
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.environments import Continuous, Discrete


@pytest.mark.parametrize("normalize", [False, True])
def test_forward_matches_separate_actor_and_critic(normalize: bool) -> None:
    model = ActorCritic(4, Discrete(2), num_learners=3, normalize_observations=normalize)
    if model.observation_statistics is not None:
        model.observation_statistics.update(3 * torch.randn(3, 100, 4) + 1)
    x = torch.randn(3, 7, 4)
    distribution, values = model(x)
    separate = model.distribution(x)
    assert isinstance(distribution, Categorical)
    assert isinstance(separate, Categorical)
    assert torch.allclose(distribution.logits, separate.logits, atol=1e-6)
    assert torch.allclose(values, model.values(x), atol=1e-6)
    assert values.shape == (3, 7)


def test_functional_call_and_assigned_state_dict() -> None:
    model, other = (ActorCritic(4, Discrete(2), num_learners=3) for _ in range(2))
    x = torch.randn(3, 7, 4)
    output = torch.func.functional_call(model, dict(other.named_parameters()), x)
    assert torch.equal(output[0].logits, other(x)[0].logits)
    assert torch.equal(output[1], other(x)[1])
    model.load_state_dict(deepcopy(other.state_dict()), assign=True)
    assert torch.equal(model.values(x), other.values(x))


def test_initial_policy_is_nearly_uniform() -> None:
    distribution, _ = ActorCritic(4, Discrete(3))(torch.randn(1, 50, 4))
    assert float(distribution.entropy().detach().min()) > 1.09  # maximum: log 3 = 1.0986


def test_continuous_actions_use_a_diagonal_gaussian() -> None:
    distribution, _ = ActorCritic(3, Continuous((-2.0, -1.0), (2.0, 1.0)), num_learners=2)(torch.randn(2, 5, 3))
    assert isinstance(distribution, DiagonalGaussian)
    assert distribution.sample().shape == (2, 5, 2)


def test_value_loss_has_no_gradient_in_the_actor() -> None:
    model = ActorCritic(4, Discrete(2), num_learners=2)
    model(torch.randn(2, 5, 4))[1][0].square().sum().backward()
    gradient = next(model.hidden.parameters()).grad
    assert gradient is not None
    norms = gradient.flatten(1).norm(dim=1)
    assert (norms > 0).tolist() == [False, False, True, False]  # actors, then critics
