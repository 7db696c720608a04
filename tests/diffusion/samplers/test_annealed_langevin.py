"""Annealed Langevin dynamics and its noise levels, with a known score."""

import pytest
import torch
from torch import Tensor

from parnassus.diffusion.samplers.annealed_langevin import (
    annealed_langevin,
    annealed_langevin_path,
    annealed_step_sizes,
)
from parnassus.diffusion.scores.noise_levels import alpha_bar_from_levels, geometric_levels, largest_distance

LEVELS = geometric_levels(4, 0.1, 2.7)


def point_mass_score(x: Tensor, t: Tensor) -> Tensor:
    """The score of a point mass at the origin with noise of each level."""
    return -x / LEVELS.to(x)[t][:, None].square()


def test_levels_are_geometric_and_increase() -> None:
    torch.testing.assert_close(LEVELS, torch.tensor([0.1, 0.3, 0.9, 2.7], dtype=torch.float64))
    assert geometric_levels(1, 0.5, 3.0).tolist() == pytest.approx([0.5])


def test_step_sizes_are_proportional_to_the_variance() -> None:
    torch.testing.assert_close(annealed_step_sizes(LEVELS, 0.5), 0.5 * LEVELS.square())


def test_levels_are_visited_in_decreasing_order() -> None:
    visited_levels = []

    def recording_score(x: Tensor, t: Tensor) -> Tensor:
        visited_levels.append(int(t[0]))
        return point_mass_score(x, t)

    path = list(annealed_langevin_path(recording_score, LEVELS, torch.zeros(3, 2), steps=2))
    assert visited_levels == [3, 3, 2, 2, 1, 1, 0, 0]
    assert len(path) == 5


def test_samples_have_the_variance_of_the_smallest_level() -> None:
    torch.manual_seed(0)
    end = annealed_langevin(point_mass_score, LEVELS, 5 * torch.randn(5_000, 2), steps=50, factor=0.2)
    assert float(end.std()) == pytest.approx(0.1 / 0.9**0.5, rel=0.03)


def test_largest_distance() -> None:
    x = torch.cat([torch.zeros(2_500, 2), torch.tensor([[3.0, 4.0]])])
    assert largest_distance(x) == pytest.approx(5.0)
    with pytest.raises(ValueError, match="at least 2 examples; got 1"):
        largest_distance(torch.zeros(1, 2))


def test_noise_level_corresponds_to_a_diffusion_step() -> None:
    """x_0 + σ ε scaled by √ᾱ has the noise √(1 − ᾱ)."""
    alpha_bar = alpha_bar_from_levels(LEVELS)
    torch.testing.assert_close(LEVELS * alpha_bar.sqrt(), (1 - alpha_bar).sqrt())


@pytest.mark.parametrize("factor", [0.0, 2.0, -0.1])
def test_unstable_steps_raise_value_error(factor: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 2 for stable steps; got factor="):
        annealed_langevin(point_mass_score, LEVELS, torch.zeros(1, 2), factor=factor)


def test_decreasing_levels_raise_value_error() -> None:
    with pytest.raises(ValueError, match="positive and increase strictly; got levels="):
        annealed_langevin(point_mass_score, LEVELS.flip(0), torch.zeros(1, 2))


@pytest.mark.parametrize(("count", "sigma_min", "sigma_max"), [(0, 0.1, 1.0), (3, 0.0, 1.0), (3, 2.0, 1.0)])
def test_invalid_levels_raise_value_error(count: int, sigma_min: float, sigma_max: float) -> None:
    with pytest.raises(ValueError, match="count ≥ 1 and 0 < sigma_min ≤ sigma_max must hold"):
        geometric_levels(count, sigma_min, sigma_max)
