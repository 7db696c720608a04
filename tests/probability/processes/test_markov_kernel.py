"""Markov kernels: densities, compositions and samples."""

from itertools import repeat

import pytest
import torch
from torch import Tensor

from parnassus.probability import LinearGaussianKernel, kernel_mass, sample_paths, seeded_generator

SIGMA = torch.tensor([[1.0, 0.4], [0.4, 0.5]], dtype=torch.float64)


def test_composition_integrates_over_the_intermediate_state() -> None:
    """The Chapman-Kolmogorov equation on a grid: ∫ A₁(x, y) A₂(y, z) dy."""
    first = LinearGaussianKernel(torch.tensor([[0.5]], dtype=torch.float64), 0.9)
    second = LinearGaussianKernel(torch.tensor([[0.2]], dtype=torch.float64), -0.3)
    y = torch.linspace(-12, 12, 4_001, dtype=torch.float64)[:, None]
    x, z = torch.tensor([1.3], dtype=torch.float64), torch.tensor([0.2], dtype=torch.float64)
    integrand = (first.log_prob(x.expand_as(y), y) + second.log_prob(y, z.expand_as(y))).exp()
    torch.testing.assert_close(first.compose(second).log_prob(x, z).exp(), torch.trapezoid(integrand, y[:, 0]))


@pytest.mark.parametrize("factor", [1.0, 0.8, 1.1])
def test_power_equals_repeated_composition(factor: float) -> None:
    kernel = LinearGaussianKernel(SIGMA, factor)
    composed = kernel.compose(kernel).compose(kernel).compose(kernel)
    torch.testing.assert_close(kernel.power(4).covariance, composed.covariance)
    assert kernel.power(4).factor == pytest.approx(composed.factor)


def test_samples_match_mean_and_covariance() -> None:
    x = torch.tensor([3.0, -2.0], dtype=torch.float64)
    samples = LinearGaussianKernel(SIGMA, 0.5)(x.expand(100_000, 2), seeded_generator())
    torch.testing.assert_close(samples.mean(0), x / 2, atol=0.01, rtol=0)
    torch.testing.assert_close(samples.T.cov(), SIGMA, atol=0.01, rtol=0)


def test_sample_paths_contain_the_start_and_all_steps() -> None:
    def add_one(x: Tensor, generator: torch.Generator | None) -> Tensor:
        return x + 1

    start = torch.arange(6).reshape(3, 2)
    path = sample_paths(repeat(add_one, 4), start)
    assert path.shape == (3, 5, 2)
    assert torch.equal(path, start[:, None] + torch.arange(5)[:, None])


def test_steps_of_a_walk_are_independent_of_the_past() -> None:
    path = sample_paths(
        repeat(LinearGaussianKernel(SIGMA), 3),
        torch.zeros(50_000, 2, dtype=torch.float64),
        generator=seeded_generator(),
    )
    steps = path.diff(dim=1)
    assert (
        float(torch.corrcoef(torch.stack([steps[:, 0, 0], steps[:, 1, 0], steps[:, 2, 0]])).tril(-1).abs().max()) < 0.02
    )


def test_kernel_mass_of_a_half_line_is_one_half() -> None:
    kernel = LinearGaussianKernel(torch.eye(1))
    fraction = kernel_mass(
        kernel, torch.tensor([5.0]), lambda y: y[:, 0] > 5, draws=50_000, generator=seeded_generator()
    )
    assert fraction == pytest.approx(0.5, abs=0.01)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="symmetric and positive definite"):
        LinearGaussianKernel(torch.tensor([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ValueError, match="symmetric and positive definite"):
        LinearGaussianKernel(torch.tensor([[1.0, 0.5], [0.0, 1.0]]))
    with pytest.raises(ValueError, match="steps must be positive; got steps=0"):
        LinearGaussianKernel(SIGMA).power(0)
    with pytest.raises(ValueError, match="draws must be positive; got draws=0"):
        kernel_mass(LinearGaussianKernel(SIGMA), torch.zeros(2, dtype=torch.float64), lambda y: y[:, 0] > 0, draws=0)
