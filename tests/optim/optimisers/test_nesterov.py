"""Nesterov's acceleration: both sequences, and the optimiser against the explicit iteration."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from parnassus.optim import Nesterov, gradient_descent, nesterov_descent, optimizer_trajectory

START = torch.tensor([1.0, -0.5], dtype=torch.float64)


def loss(theta: Tensor) -> Tensor:
    return theta.cosh().sum() + theta.prod()


def test_steps_match_hand_computed_values() -> None:
    """On ½ x² from 1 with γ = ½: φ = 1, ½, ¼, … and the first extrapolation is 1/4 of the second step."""
    path = nesterov_descent(
        lambda x: x.square().sum() / 2, torch.ones(1, dtype=torch.float64), learning_rate=0.5, steps=3
    )
    torch.testing.assert_close(path.phi[:, 0].tolist(), [1.0, 0.5, 0.25, 0.25 / 2 - 0.25 / 8])
    torch.testing.assert_close(path.w[:3, 0].tolist(), [1.0, 0.5, 0.25 - 0.25 / 4])


@pytest.mark.parametrize("damping", [1.0, 3.0, 10.0])
def test_optimiser_follows_the_iterates_w(damping: float) -> None:
    path = nesterov_descent(loss, START, learning_rate=0.1, steps=40, damping=damping)
    trajectory = optimizer_trajectory(loss, START, partial(Nesterov, lr=0.1, damping=damping), steps=40)
    torch.testing.assert_close(trajectory, path.w, atol=1e-13, rtol=0)


def test_large_damping_is_gradient_descent() -> None:
    path = nesterov_descent(loss, START, learning_rate=0.1, steps=20, damping=1e12)
    torch.testing.assert_close(path.w, gradient_descent(loss, START, learning_rate=0.1, steps=20))


def test_weight_decay_is_an_l2_penalty() -> None:
    decayed = optimizer_trajectory(loss, START, partial(Nesterov, lr=0.1, weight_decay=0.3), steps=15)
    penalised = optimizer_trajectory(
        lambda w: loss(w) + 0.15 * w.square().sum(), START, partial(Nesterov, lr=0.1), steps=15
    )
    torch.testing.assert_close(decayed, penalised, atol=1e-13, rtol=0)


def test_parameter_added_later_starts_at_step_zero() -> None:
    first, second = (nn.Parameter(START.clone()) for _ in range(2))
    optimizer = Nesterov([first, second], lr=0.1)
    for step in range(8):
        optimizer.zero_grad()
        (loss(first) + loss(second) * (step >= 3)).backward()
        if step < 3:
            second.grad = None
        optimizer.step()
    path = nesterov_descent(loss, START, learning_rate=0.1, steps=8).w
    torch.testing.assert_close(first.detach(), path[8], atol=1e-13, rtol=0)
    torch.testing.assert_close(second.detach(), path[5], atol=1e-13, rtol=0)


@pytest.mark.parametrize(("rate", "damping"), [(0.0, 3.0), (0.1, 0.0), (float("nan"), 3.0)])
def test_invalid_arguments_raise_value_error(rate: float, damping: float) -> None:
    with pytest.raises(
        ValueError, match=f"need learning_rate > 0 and damping > 0; got learning_rate={rate}, damping={damping}"
    ):
        nesterov_descent(loss, START, learning_rate=rate, damping=damping, steps=1)
