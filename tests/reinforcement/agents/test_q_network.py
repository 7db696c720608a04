"""Networks of action values: every learner its own, and the two parts of a dueling one."""

from copy import deepcopy

import pytest
import torch

from parnassus.reinforcement.agents.q_network import DuelingQNetwork, QNetwork, dueling_q_values


@pytest.mark.parametrize("kind", [QNetwork, DuelingQNetwork])
def test_learners_know_nothing_of_each_other(kind: type[QNetwork] | type[DuelingQNetwork]) -> None:
    model = kind(4, 3, hidden=(8, 8), num_learners=2)
    x = torch.randn(2, 5, 4)
    q = model(x)
    assert q.shape == (2, 5, 3)
    q[0].sum().backward()
    for parameter in model.parameters():
        assert parameter.grad is not None
        assert bool((parameter.grad[1] == 0).all())
    assert any(bool((p.grad[0] != 0).any()) for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("kind", [QNetwork, DuelingQNetwork])
def test_the_gradient_written_out_is_autograds(kind: type[QNetwork] | type[DuelingQNetwork]) -> None:
    model = kind(4, 3, hidden=(8, 8), num_learners=2).double()
    x, slope = torch.randn(2, 5, 4).double(), torch.randn(2, 5, 3).double()
    known = torch.autograd.grad(model(x), list(model.parameters()), slope)
    trace = model.forward_with_trace(x)
    torch.testing.assert_close(trace.outputs, model(x))
    model.write_gradients(trace, slope)
    torch.testing.assert_close([parameter.grad for parameter in model.parameters()], list(known))


@pytest.mark.parametrize("kind", [QNetwork, DuelingQNetwork])
def test_weights_may_be_exchanged(kind: type[QNetwork] | type[DuelingQNetwork]) -> None:
    model, other = (kind(4, 3, hidden=(8, 8), num_learners=2) for _ in range(2))
    x = torch.randn(2, 5, 4)
    assert torch.equal(torch.func.functional_call(model, dict(other.named_parameters()), x), other(x))
    model.load_state_dict(deepcopy(other.state_dict()), assign=True)
    assert torch.equal(model(x), other(x))


def test_the_mean_over_the_actions_is_the_value() -> None:
    value, advantage = torch.randn(6, 1), torch.randn(6, 4)
    q = dueling_q_values(value, advantage)
    torch.testing.assert_close(q.mean(-1, keepdim=True), value)
    torch.testing.assert_close(q - q[:, :1], advantage - advantage[:, :1])
    torch.testing.assert_close(dueling_q_values(value, advantage + 7), q)


def test_no_actions_are_told() -> None:
    for kind in (QNetwork, DuelingQNetwork):
        with pytest.raises(ValueError, match="got actions=0"):
            kind(4, 0)
