"""The clipped surrogate by cases, and its slope."""

import pytest
import torch

from parnassus.reinforcement.agents.surrogate import clipped_surrogate, policy_ratio


@pytest.mark.parametrize(
    ("ratio", "advantage", "value", "slope"),
    [
        (1.1, 2.0, 2.2, 2.0),  # inside
        (1.5, 2.0, 2.4, 0.0),  # far enough
        (0.5, 2.0, 1.0, 2.0),  # the wrong way: all of the slope
        (0.9, -2.0, -1.8, -2.0),
        (0.5, -2.0, -1.6, 0.0),
        (1.5, -2.0, -3.0, -2.0),
    ],
)
def test_six_cases(ratio: float, advantage: float, value: float, slope: float) -> None:
    rho = torch.tensor([ratio], dtype=torch.float64, requires_grad=True)
    clipped = clipped_surrogate(rho, torch.tensor([advantage], dtype=torch.float64), 0.2)
    (found,) = torch.autograd.grad(clipped.sum(), rho)
    assert float(clipped.detach()) == pytest.approx(value)
    assert float(found) == slope


def test_the_ratio_lets_gradients_through_the_new_policy_alone() -> None:
    new, old = torch.tensor([-1.0], requires_grad=True), torch.tensor([-2.0], requires_grad=True)
    ratio = policy_ratio(new, old)
    ratio.sum().backward()
    torch.testing.assert_close(ratio.detach(), torch.tensor([1.0]).exp())
    torch.testing.assert_close(new.grad, torch.tensor([1.0]).exp())
    assert old.grad is None
    with pytest.raises(ValueError, match="clip_range must be positive; got clip_range=0"):
        clipped_surrogate(ratio.detach(), ratio.detach(), 0.0)
