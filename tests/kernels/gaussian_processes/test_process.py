"""Gaussian processes against their normal distributions at finitely many points."""

import pytest
import torch
from torch import Tensor

from parnassus.kernels import BrownianKernel, GaussianProcess, LinearKernel, RBFKernel, ScaledKernel, brownian_paths
from parnassus.kernels.gaussian_processes.process import SamplePaths
from parnassus.probability import seeded_generator


def sine_mean(x: Tensor) -> Tensor:
    return x[:, 0].sin()


def test_samples_have_the_mean_and_covariance_of_the_process() -> None:
    x = torch.tensor([[0.0, 0.0], [0.4, -0.2], [1.0, 1.0], [2.0, 0.5]], dtype=torch.float64)
    process = GaussianProcess(ScaledKernel(RBFKernel(), 2.0), sine_mean)
    values, jitter = process.sample(x, 40_000, generator=seeded_generator())
    assert jitter == 0
    torch.testing.assert_close(values.mean(0), sine_mean(x), atol=0.03, rtol=0)
    torch.testing.assert_close(values.mT.cov(), process.kernel(x).detach(), atol=0.05, rtol=0)


def test_distribution_at_points_has_the_correct_moments() -> None:
    x = torch.tensor([[0.5], [1.5], [1.0]], dtype=torch.float64)
    distribution = GaussianProcess(BrownianKernel(), sine_mean).distribution(x)
    torch.testing.assert_close(distribution.mean, x[:, 0].sin())
    expected = torch.tensor([[0.5, 0.5, 0.5], [0.5, 1.5, 1.0], [0.5, 1.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(distribution.covariance, expected)
    torch.testing.assert_close(GaussianProcess(BrownianKernel()).variances(x), x[:, 0])


def test_singular_process_is_sampled_with_jitter() -> None:
    x = torch.linspace(-1, 1, 30, dtype=torch.float64)[:, None]
    values, jitter = GaussianProcess(LinearKernel()).sample(x, 3, generator=seeded_generator())
    assert 0 < jitter < 1e-10
    slopes = (values[:, -1] - values[:, 0]) / 2
    torch.testing.assert_close(values, slopes[:, None] * x[:, 0], atol=1e-5, rtol=0)


def test_equal_seeds_give_equal_samples() -> None:
    x = torch.linspace(0, 1, 5, dtype=torch.float64)[:, None]
    process = GaussianProcess(RBFKernel(0.1))
    first, second = (process.sample(x, 2, generator=seeded_generator(3)).values for _ in range(2))
    torch.testing.assert_close(first, second, atol=0, rtol=0)


def test_brownian_increments_are_independent_with_correct_variance() -> None:
    times = torch.tensor([0.0, 0.5, 0.6, 2.0], dtype=torch.float64)
    paths = brownian_paths(times, 50_000, generator=seeded_generator())
    assert paths.shape == (50_000, 4)
    assert float(paths[:, 0].abs().max()) == 0
    expected = torch.tensor([0.5, 0.1, 1.4], dtype=torch.float64).diag()
    torch.testing.assert_close(paths.diff(dim=1).mT.cov(), expected, atol=0.03, rtol=0)


def test_invalid_brownian_times_raise_value_error() -> None:
    with pytest.raises(ValueError, match="non-decreasing"):
        brownian_paths(torch.tensor([0.0, 1.0, 0.5]), 2)
    with pytest.raises(ValueError, match="non-decreasing"):
        brownian_paths(torch.tensor([-1.0, 1.0]), 2)
    with pytest.raises(ValueError, match="count=0"):
        brownian_paths(torch.tensor([1.0]), 0)


def test_empty_samples_raise() -> None:
    with pytest.raises(ValueError, match="count=0"):
        GaussianProcess(RBFKernel()).sample(torch.zeros(2, 1), 0)
    with pytest.raises(ValueError, match="got 0 points"):
        GaussianProcess(RBFKernel()).sample(torch.zeros(0, 1), 1)


def test_rms_increments_of_lines() -> None:
    lines = torch.tensor([[1.0], [-2.0]], dtype=torch.float64) * torch.arange(9)
    torch.testing.assert_close(
        SamplePaths(lines, 0.0).rms_increments([1, 3]), torch.tensor([1.0, 3.0], dtype=torch.float64) * 2.5**0.5
    )
