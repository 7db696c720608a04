"""The Fokker-Planck equation against closed-form densities, and properties that hold for any coefficients."""

import pytest
import torch
from torch import Tensor

from parnassus.diffusion.continuous.fokker_planck import (
    fokker_planck,
    heat_kernel,
    jump_rates,
    stationary_density,
    transition_matrix,
)
from parnassus.diffusion.continuous.ornstein_uhlenbeck import OrnsteinUhlenbeck
from parnassus.probability import normal_density


def make_grid(count: int, limit: float = 5.0) -> tuple[Tensor, Tensor]:
    edges = torch.linspace(-limit, limit, count + 1, dtype=torch.float64)
    return edges, (edges[:-1] + edges[1:]) / 2


def ones(x: Tensor, t: Tensor) -> Tensor:
    return torch.ones_like(x)


def zeros(x: Tensor, t: Tensor) -> Tensor:
    return torch.zeros_like(x)


def test_heat_equation_converges_with_second_order() -> None:
    times = torch.tensor([0.2, 1.0], dtype=torch.float64)
    errors = []
    for count in (100, 200):
        edges, x = make_grid(count)
        p = fokker_planck(zeros, ones, heat_kernel(x, 0.2), edges, times)
        errors.append(float((p[-1] - heat_kernel(x, 1.0)).abs().max()))
    assert errors[1] < 2e-4
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)


def test_ornstein_uhlenbeck_density_matches_the_exact_transition() -> None:
    process = OrnsteinUhlenbeck(rate=1.0, mean=0.5, sigma=1.2)
    edges, x = make_grid(200)
    start = normal_density(x, mean=-1.5, variance=0.16)
    p = fokker_planck(process.drift, process.volatility, start, edges, torch.tensor([0.0, 0.7]).double())
    transition = process.transition(torch.tensor(-1.5, dtype=torch.float64), 0.7)
    decay = torch.exp(torch.tensor(-1.4, dtype=torch.float64))
    exact = normal_density(x, mean=transition.mean, variance=transition.variance + 0.16 * decay)
    torch.testing.assert_close(p[-1], exact, atol=1e-3, rtol=0)


def test_density_is_transported_without_noise() -> None:
    """The upwind scheme has numerical diffusion of order h: the mean is exact, the error nearly halves with h."""
    errors = []
    for count in (200, 400):
        edges, x = make_grid(count)
        start = normal_density(x, mean=-2.0, variance=0.25)
        p = fokker_planck(ones, zeros, start, edges, torch.tensor([0.0, 2.0]).double())[-1]
        assert float((x * p * edges.diff()).sum()) == pytest.approx(0.0, abs=1e-3)
        errors.append(float((p - normal_density(x, mean=0.0, variance=0.25)).abs().max()))
    assert errors[0] / errors[1] == pytest.approx(1.8, abs=0.2)


def test_mass_and_positivity_are_preserved_for_any_coefficients_and_steps() -> None:
    torch.manual_seed(0)
    edges = torch.cat([torch.zeros(1), torch.rand(60).cumsum(0)]).double()  # cells of different widths

    def oscillating(x: Tensor, t: Tensor) -> Tensor:
        return 30 * torch.sin(7 * x) + 50 * t

    start = torch.rand(60, dtype=torch.float64)
    times = torch.tensor([0.0, 1e-6, 0.1, 50.0], dtype=torch.float64)
    p = fokker_planck(oscillating, lambda x, t: x.cos() * 3, start, edges, times)
    assert bool((p >= 0).all())
    mass = (p * edges.diff()).sum(1)
    torch.testing.assert_close(mass, mass[:1].expand(4), rtol=1e-12, atol=0)


def test_transition_matrix_is_the_matrix_exponential() -> None:
    edges, _ = make_grid(30)
    rates = jump_rates(lambda x, t: -x, ones, edges)
    torch.testing.assert_close(transition_matrix(rates, 0.8), torch.linalg.matrix_exp(0.8 * rates))
    torch.testing.assert_close(rates.sum(0), torch.zeros(30, dtype=torch.float64), atol=1e-12, rtol=0)


def test_stationary_density_of_a_double_well_is_the_gibbs_density() -> None:
    """μ = −U′ with U = (x² − 1)² and σ = 1: p ∝ exp(−2U), which is stationary."""
    edges, x = make_grid(300, limit=3.0)

    def drift(x: Tensor, t: Tensor) -> Tensor:
        return -4 * x * (x.square() - 1)

    gibbs = torch.exp(-2 * (x.square() - 1).square())
    gibbs = gibbs / (gibbs * edges.diff()).sum()
    stationary = stationary_density(drift, ones, edges)
    torch.testing.assert_close(stationary, gibbs, atol=1e-3, rtol=0)
    later = fokker_planck(drift, ones, stationary, edges, torch.tensor([0.0, 5.0]).double())[-1]
    torch.testing.assert_close(later, stationary)


def test_time_dependent_coefficients_are_evaluated_at_midpoints() -> None:
    """σ² = 2t adds ∫ 2t dt = 1 to the variance for any time grid."""
    edges, x = make_grid(300, limit=6.0)
    times = torch.tensor([0.0, 0.4, 1.0], dtype=torch.float64)
    p = fokker_planck(zeros, lambda x, t: (2 * t).sqrt().expand_as(x), heat_kernel(x, 0.3), edges, times)
    torch.testing.assert_close(p[-1], heat_kernel(x, 1.3), atol=1e-3, rtol=0)


def test_invalid_arguments_raise_value_error() -> None:
    edges, x = make_grid(10)
    with pytest.raises(ValueError, match="one value ≥ 0 per cell; got 3"):
        fokker_planck(zeros, ones, torch.ones(3).double(), edges, torch.tensor([0.0, 1.0]).double())
    with pytest.raises(ValueError, match="edges must increase"):
        jump_rates(zeros, ones, torch.tensor([0.0, 1.0, 0.5]))
    with pytest.raises(ValueError, match="must be positive"):
        heat_kernel(x, 0.0)
    with pytest.raises(ValueError, match="must be positive"):
        transition_matrix(jump_rates(zeros, ones, edges), -1.0)
