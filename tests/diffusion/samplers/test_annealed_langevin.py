"""Annealing through known blurs."""

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


def to_origin(x: Tensor, t: Tensor) -> Tensor:
    """The score of a point at the origin, blurred by each level."""
    return -x / LEVELS.to(x)[t][:, None].square()


def test_levels_are_geometric_and_rise() -> None:
    torch.testing.assert_close(LEVELS, torch.tensor([0.1, 0.3, 0.9, 2.7], dtype=torch.float64))
    assert geometric_levels(1, 0.5, 3.0).tolist() == pytest.approx([0.5])


def test_steps_are_a_share_of_the_variance() -> None:
    torch.testing.assert_close(annealed_step_sizes(LEVELS, 0.5), 0.5 * LEVELS.square())


def test_it_visits_the_levels_from_the_widest_down() -> None:
    seen = []

    def listening(x: Tensor, t: Tensor) -> Tensor:
        seen.append(int(t[0]))
        return to_origin(x, t)

    path = list(annealed_langevin_path(listening, LEVELS, torch.zeros(3, 2), steps=2))
    assert seen == [3, 3, 2, 2, 1, 1, 0, 0]
    assert len(path) == 5


def test_samples_shrink_to_the_narrowest_blur() -> None:
    torch.manual_seed(0)
    end = annealed_langevin(to_origin, LEVELS, 5 * torch.randn(5_000, 2), steps=50, factor=0.2)
    assert float(end.std()) == pytest.approx(0.1 / 0.9**0.5, rel=0.03)


def test_a_blur_as_wide_as_the_data() -> None:
    x = torch.cat([torch.zeros(2_500, 2), torch.tensor([[3.0, 4.0]])])
    assert largest_distance(x) == pytest.approx(5.0)
    with pytest.raises(ValueError, match="at least 2 examples; got 1"):
        largest_distance(torch.zeros(1, 2))


def test_a_level_is_a_step_of_a_chain() -> None:
    """x_0 + σ ε scaled by √ᾱ has the noise √(1 − ᾱ)."""
    alpha_bar = alpha_bar_from_levels(LEVELS)
    torch.testing.assert_close(LEVELS * alpha_bar.sqrt(), (1 - alpha_bar).sqrt())


@pytest.mark.parametrize("factor", [0.0, 2.0, -0.1])
def test_unstable_steps_are_refused(factor: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 2 for stable steps; got factor="):
        annealed_langevin(to_origin, LEVELS, torch.zeros(1, 2), factor=factor)


def test_levels_that_fall_are_refused() -> None:
    with pytest.raises(ValueError, match="positive and increase strictly; got levels="):
        annealed_langevin(to_origin, LEVELS.flip(0), torch.zeros(1, 2))


@pytest.mark.parametrize(("count", "smallest", "largest"), [(0, 0.1, 1.0), (3, 0.0, 1.0), (3, 2.0, 1.0)])
def test_impossible_levels_are_refused(count: int, smallest: float, largest: float) -> None:
    with pytest.raises(ValueError, match="need count ≥ 1 and 0 < smallest ≤ largest"):
        geometric_levels(count, smallest, largest)
