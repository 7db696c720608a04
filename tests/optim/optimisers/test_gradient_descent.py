"""Gradient descent on problems with known paths."""

import pytest
import torch
from torch import Tensor

from parnassus.optim import (
    gradient_descent,
    gradient_step,
    per_sample_gradients,
    sequential_batches,
    steepest_descent,
    stochastic_gradient_descent,
)


def squared_error(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return (x @ theta - y).square()


def test_path_on_a_parabola_is_geometric() -> None:
    """ℓ = ½ β θ²: θ_t = (1 − ηβ)ᵗ θ_0."""
    path = gradient_descent(lambda theta: 2 * theta.square().sum(), torch.tensor([3.0]), learning_rate=0.1, steps=5)
    torch.testing.assert_close(path[:, 0], 3 * 0.6 ** torch.arange(6))


def test_learning_rate_can_be_a_function_of_the_step() -> None:
    path = gradient_descent(lambda theta: theta.sum(), torch.zeros(1), learning_rate=lambda t: 2.0**-t, steps=4)
    assert path[:, 0].tolist() == [0, -1, -1.5, -1.75, -1.875]


def test_schedule_reaching_zero_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"must be positive; got learning_rate=0\.0"):
        gradient_descent(lambda theta: theta.sum(), torch.zeros(1), learning_rate=lambda t: 1.0 - t, steps=2)


def test_steepest_descent_direction_is_the_negative_unit_gradient() -> None:
    torch.testing.assert_close(steepest_descent(torch.tensor([3.0, -4.0])), torch.tensor([-0.6, 0.8]))
    with pytest.raises(ValueError, match="needs a nonzero gradient"):
        steepest_descent(torch.zeros(2))


def test_gradient_descent_matches_torch_sgd() -> None:
    torch.manual_seed(0)
    start = torch.randn(2, 3, dtype=torch.float64)
    parameter = torch.nn.Parameter(start.clone())
    optimizer = torch.optim.SGD([parameter], lr=0.03)
    for _ in range(20):
        optimizer.zero_grad()
        parameter.exp().sum().backward()
        optimizer.step()
    path = gradient_descent(lambda theta: theta.exp().sum(), start, learning_rate=0.03, steps=20)
    torch.testing.assert_close(path[-1], parameter.detach())
    assert path.shape == (21, 2, 3)


def test_full_batch_sgd_matches_gradient_descent() -> None:
    torch.manual_seed(0)
    x, y, start = torch.randn(10, 3), torch.randn(10), torch.randn(3)
    expected = gradient_descent(lambda theta: (x @ theta - y).square().mean(), start, learning_rate=0.1, steps=4)
    full_batch = stochastic_gradient_descent(
        squared_error, start, (x, y), batches=sequential_batches(10, 10, epochs=4), learning_rate=0.1
    )
    torch.testing.assert_close(full_batch, expected)


def test_per_sample_gradients_match_the_closed_form() -> None:
    torch.manual_seed(0)
    x, y, theta = torch.randn(5, 3), torch.randn(5), torch.randn(3)
    expected = 2 * (x @ theta - y)[:, None] * x
    torch.testing.assert_close(per_sample_gradients(squared_error, theta, x, y), expected)


def test_step_follows_the_negative_gradient() -> None:
    assert gradient_step(torch.tensor([1.0]), torch.tensor([2.0]), 0.25).item() == 0.5


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan")])
def test_non_positive_learning_rate_raises_value_error(rate: float) -> None:
    with pytest.raises(ValueError, match=f"must be positive; got learning_rate={rate}"):
        gradient_descent(lambda theta: theta.sum(), torch.zeros(1), learning_rate=rate, steps=1)
