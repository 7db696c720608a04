"""The Euler-Maruyama method on equations with known solutions."""

import pytest
import torch
from torch import Tensor

from parnassus.diffusion.continuous.brownian_motion import wiener_process
from parnassus.diffusion.continuous.euler_maruyama import euler_maruyama, euler_maruyama_path

TIMES = torch.linspace(0, 1, 65, dtype=torch.float64)


def zero(x: Tensor, t: Tensor) -> Tensor:
    return torch.zeros_like(x)


def test_solution_without_drift_is_exact() -> None:
    noise = wiener_process(TIMES, (4, 3), generator=torch.Generator().manual_seed(0))
    start = torch.ones(4, 3, dtype=torch.float64)
    x = euler_maruyama(zero, lambda x, t: torch.full_like(x, 2.0), start, TIMES, wiener=noise)
    torch.testing.assert_close(x, start + 2 * noise[-1])


def test_solution_without_noise_matches_euler_method() -> None:
    start = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    x = euler_maruyama(lambda x, t: -x, zero, start, TIMES)
    torch.testing.assert_close(x, start * (1 - 1 / 64) ** 64)


def test_one_step_matches_closed_form() -> None:
    """X + μ(X, t) Δ + σ(X, t) ΔW = 2 + (2 · 1) · ½ + 2² · 0.3, with μ = x t and σ = x²."""
    times = torch.tensor([1.0, 1.5], dtype=torch.float64)
    noise = torch.tensor([[0.1], [0.4]], dtype=torch.float64)
    x = euler_maruyama(lambda x, t: x * t, lambda x, t: x**2, torch.tensor([2.0]).double(), times, wiener=noise)
    torch.testing.assert_close(x, torch.tensor([4.2], dtype=torch.float64))


def test_matrix_volatility_gives_the_noise_covariance() -> None:
    torch.manual_seed(0)
    matrix = torch.tensor([[1.0, 0.5, 0.0], [0.0, 2.0, -1.0]], dtype=torch.float64)
    start = torch.zeros(50_000, 2, dtype=torch.float64)
    x = euler_maruyama(zero, lambda x, t: matrix.expand(len(x), 2, 3), start, TIMES[::16])
    torch.testing.assert_close(x.mT.cov(), matrix @ matrix.mT, atol=0.08, rtol=0)


def test_decreasing_times_reverse_the_drift_but_not_the_variance() -> None:
    torch.manual_seed(0)
    start = torch.zeros(100_000, 1, dtype=torch.float64)
    x = euler_maruyama(
        lambda x, t: torch.ones_like(x), lambda x, t: torch.full_like(x, 0.5), start, TIMES[::16].flip(0)
    )
    torch.testing.assert_close(x.mean(), torch.tensor(-1.0).double(), atol=0.01, rtol=0)
    torch.testing.assert_close(x.var(), torch.tensor(0.25).double(), atol=0.01, rtol=0)


def test_path_has_one_state_per_time_and_ends_at_the_result() -> None:
    noise = wiener_process(TIMES, (2, 1), generator=torch.Generator().manual_seed(1))
    start = torch.ones(2, 1, dtype=torch.float64)
    path = list(euler_maruyama_path(lambda x, t: -x, lambda x, t: x, start, TIMES, wiener=noise))
    assert len(path) == len(TIMES)
    torch.testing.assert_close(path[0], start)
    torch.testing.assert_close(path[-1], euler_maruyama(lambda x, t: -x, lambda x, t: x, start, TIMES, wiener=noise))


def test_non_monotone_times_raise_value_error() -> None:
    with pytest.raises(ValueError, match="strictly monotone"):
        euler_maruyama(zero, zero, torch.zeros(1, 1), torch.tensor([0.0, 1.0, 0.5]))
