from math import log, pi

import pytest
import torch

from parnassus.data.built_in.densities import moons_entropy, moons_grid, moons_log_prob
from parnassus.data.built_in.toy import moons


@pytest.mark.parametrize("noise", [0.04, 0.1, 0.3])
def test_density_integrates_to_one(noise: float) -> None:
    grid, cell = moons_grid(noise=noise, spacing=noise / 2)
    mass = moons_log_prob(grid.flatten(0, 1), noise=noise).exp().sum() * cell
    assert float(mass) == pytest.approx(1.0, abs=1e-11)


def test_density_matches_a_histogram_of_samples() -> None:
    noise, cell = 0.1, 0.25
    points = moons(200_000, noise=noise, seed=3).x.double()
    edges = [torch.arange(low, high, cell, dtype=torch.float64) for low, high in ((-1.5, 2.6), (-1.0, 1.6))]
    frequency = torch.histogramdd(points, edges).hist / len(points)
    offsets = (torch.arange(16, dtype=torch.float64) + 0.5) * cell / 16
    x = (edges[0][:-1, None] + offsets)[:, None, :, None]
    y = (edges[1][:-1, None] + offsets)[None, :, None, :]
    fine = torch.stack([axis.flatten() for axis in torch.broadcast_tensors(x, y)], dim=1)
    mass = moons_log_prob(fine, noise=noise).exp().view(*frequency.shape, -1).mean(-1) * cell**2
    error = 5 * (mass / len(points)).sqrt() + 5e-5  # five standard errors of a count
    assert bool(((frequency - mass).abs() <= error).all())


def test_density_in_the_middle_of_an_arc_matches_a_straight_line() -> None:
    """Where the arc is nearly straight and the other moon is far away, p = 1/(2π) · N(0; 0, noise²)."""
    noise = 1e-3
    top = moons_log_prob(torch.tensor([[0.0, 1.0]], dtype=torch.float64), noise=noise)
    assert float(top) == pytest.approx(-log(2 * pi) - 0.5 * log(2 * pi * noise**2), abs=1e-5)


def test_entropy_matches_the_sample_mean_of_negative_log_density() -> None:
    sample_entropy = -moons_log_prob(moons(100_000, seed=5).x).mean()
    assert float(sample_entropy) == pytest.approx(moons_entropy(), abs=0.01)


def test_distant_points_have_finite_log_densities() -> None:
    assert torch.isfinite(moons_log_prob(torch.tensor([[50.0, -50.0]]))).all()


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match=r"must be positive, got noise=0"):
        moons_log_prob(torch.zeros(1, 2), noise=0.0)
    with pytest.raises(ValueError, match="spacing must be positive"):
        moons_grid(spacing=0.0)
