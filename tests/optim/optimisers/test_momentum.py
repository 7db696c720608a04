"""Momentum on problems with known paths and known rates."""

import pytest
import torch
from torch import Tensor

from parnassus.optim import convergence_factor, gradient_descent, heavy_ball, max_stable_rate, moving_average_momentum


def loss(theta: Tensor) -> Tensor:
    return theta.exp().sum() + theta.square().sum()


def test_heavy_ball_matches_torch_sgd_with_momentum() -> None:
    torch.manual_seed(0)
    start = torch.randn(2, 3, dtype=torch.float64)
    parameter = torch.nn.Parameter(start.clone())
    optimizer = torch.optim.SGD([parameter], lr=0.03, momentum=0.8)
    for _ in range(20):
        optimizer.zero_grad()
        loss(parameter).backward()
        optimizer.step()
    path = heavy_ball(loss, start, learning_rate=0.03, momentum=0.8, steps=20)
    torch.testing.assert_close(path[-1], parameter.detach())
    assert path.shape == (21, 2, 3)


def test_moving_average_momentum_is_heavy_ball_with_a_smaller_rate() -> None:
    start = torch.tensor([1.0, -2.0], dtype=torch.float64)
    average = moving_average_momentum(loss, start, learning_rate=0.3, momentum=0.8, steps=30)
    torch.testing.assert_close(average, heavy_ball(loss, start, learning_rate=0.06, momentum=0.8, steps=30))


def test_heavy_ball_without_momentum_is_gradient_descent() -> None:
    start = torch.tensor([1.0, -2.0])
    expected = gradient_descent(loss, start, learning_rate=0.1, steps=9)
    torch.testing.assert_close(heavy_ball(loss, start, learning_rate=0.1, momentum=0.0, steps=9), expected)


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.9])
@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("curvature", [0.1, 1.0, 4.0])
def test_convergence_factor_is_the_spectral_radius_of_a_step(rate: float, momentum: float, curvature: float) -> None:
    """(θ, φ) ↦ (θ − η (μφ + βθ), μφ + βθ) as a matrix, by its eigenvalues."""
    matrix = torch.tensor([[1 - rate * curvature, -rate * momentum], [curvature, momentum]], dtype=torch.float64)
    radius = torch.linalg.eigvals(matrix).abs().max()
    factor = convergence_factor(torch.tensor(curvature, dtype=torch.float64), learning_rate=rate, momentum=momentum)
    torch.testing.assert_close(factor, radius)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_momentum_converges_below_the_largest_stable_rate_and_diverges_above(momentum: float) -> None:
    limit = max_stable_rate(4.0, momentum)
    start = torch.tensor([1.0], dtype=torch.float64)
    converging, diverging = (
        heavy_ball(
            lambda theta: 2 * theta.square().sum(),
            start,
            learning_rate=fraction * limit,
            momentum=momentum,
            steps=1_000,
        )[-1].abs()
        for fraction in (0.98, 1.02)
    )
    assert float(converging) < 1e-3
    assert float(diverging) > 1e3


@pytest.mark.parametrize(("rate", "momentum"), [(0.0, 0.5), (-1.0, 0.5), (0.1, 1.0), (0.1, -0.1), (float("nan"), 0.5)])
def test_invalid_arguments_raise_value_error(rate: float, momentum: float) -> None:
    with pytest.raises(ValueError, match="need learning_rate > 0 and 0 ≤ momentum < 1; got learning_rate="):
        heavy_ball(loss, torch.zeros(1), learning_rate=rate, momentum=momentum, steps=1)
    with pytest.raises(ValueError, match="need learning_rate > 0 and 0 ≤ momentum < 1; got learning_rate="):
        moving_average_momentum(loss, torch.zeros(1), learning_rate=rate, momentum=momentum, steps=1)
    with pytest.raises(ValueError, match="need learning_rate > 0 and 0 ≤ momentum < 1; got learning_rate="):
        convergence_factor(torch.ones(1), learning_rate=rate, momentum=momentum)
