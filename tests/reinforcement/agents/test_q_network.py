"""Q-networks of several learners, plain and dueling."""

from copy import deepcopy

import pytest
import torch

from parnassus.reinforcement.agents.q_network import DuelingQNetwork, QNetwork, dueling_q_values


@pytest.mark.parametrize("network", [QNetwork, DuelingQNetwork])
def test_learners_have_independent_gradients(network: type[QNetwork] | type[DuelingQNetwork]) -> None:
    model = network(4, 3, hidden=(8, 8), num_learners=2)
    x = torch.randn(2, 5, 4)
    q = model(x)
    assert q.shape == (2, 5, 3)
    q[0].sum().backward()
    for parameter in model.parameters():
        assert parameter.grad is not None
        assert bool((parameter.grad[1] == 0).all())
    assert any(bool((p.grad[0] != 0).any()) for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("network", [QNetwork, DuelingQNetwork])
def test_write_gradients_matches_autograd(network: type[QNetwork] | type[DuelingQNetwork]) -> None:
    model = network(4, 3, hidden=(8, 8), num_learners=2).double()
    x, output_gradient = torch.randn(2, 5, 4).double(), torch.randn(2, 5, 3).double()
    expected = torch.autograd.grad(model(x), list(model.parameters()), output_gradient)
    activations = model.forward_with_activations(x)
    torch.testing.assert_close(activations.outputs, model(x))
    model.write_gradients(activations, output_gradient)
    torch.testing.assert_close([parameter.grad for parameter in model.parameters()], list(expected))


@pytest.mark.parametrize("network", [QNetwork, DuelingQNetwork])
def test_functional_call_and_assigned_state_dict(network: type[QNetwork] | type[DuelingQNetwork]) -> None:
    model, other = (network(4, 3, hidden=(8, 8), num_learners=2) for _ in range(2))
    x = torch.randn(2, 5, 4)
    assert torch.equal(torch.func.functional_call(model, dict(other.named_parameters()), x), other(x))
    model.load_state_dict(deepcopy(other.state_dict()), assign=True)
    assert torch.equal(model(x), other(x))


def test_mean_of_dueling_q_values_is_the_state_value() -> None:
    value, advantage = torch.randn(6, 1), torch.randn(6, 4)
    q = dueling_q_values(value, advantage)
    torch.testing.assert_close(q.mean(-1, keepdim=True), value)
    torch.testing.assert_close(q - q[:, :1], advantage - advantage[:, :1])
    torch.testing.assert_close(dueling_q_values(value, advantage + 7), q)


def test_zero_actions_raise_value_error() -> None:
    for network in (QNetwork, DuelingQNetwork):
        with pytest.raises(ValueError, match="got actions=0"):
            network(4, 0)
