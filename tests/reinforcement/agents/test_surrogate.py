"""Clipped surrogate and policy ratio."""

import pytest
import torch

from parnassus.reinforcement.agents.surrogate import clipped_surrogate, policy_ratio


@pytest.mark.parametrize(
    ("ratio", "advantage", "value", "gradient"),
    [
        (1.1, 2.0, 2.2, 2.0),  # inside the clip range
        (1.5, 2.0, 2.4, 0.0),  # clipped
        (0.5, 2.0, 1.0, 2.0),  # outside the range, but the minimum keeps the gradient
        (0.9, -2.0, -1.8, -2.0),
        (0.5, -2.0, -1.6, 0.0),
        (1.5, -2.0, -3.0, -2.0),
    ],
)
def test_clipped_surrogate_value_and_gradient(ratio: float, advantage: float, value: float, gradient: float) -> None:
    rho = torch.tensor([ratio], dtype=torch.float64, requires_grad=True)
    clipped = clipped_surrogate(rho, torch.tensor([advantage], dtype=torch.float64), 0.2)
    (actual_gradient,) = torch.autograd.grad(clipped.sum(), rho)
    assert float(clipped.detach()) == pytest.approx(value)
    assert float(actual_gradient) == gradient


def test_policy_ratio_has_gradients_only_for_the_new_policy() -> None:
    new, old = torch.tensor([-1.0], requires_grad=True), torch.tensor([-2.0], requires_grad=True)
    ratio = policy_ratio(new, old)
    ratio.sum().backward()
    torch.testing.assert_close(ratio.detach(), torch.tensor([1.0]).exp())
    torch.testing.assert_close(new.grad, torch.tensor([1.0]).exp())
    assert old.grad is None
    with pytest.raises(ValueError, match="clip_range must be positive; got clip_range=0"):
        clipped_surrogate(ratio.detach(), ratio.detach(), 0.0)
