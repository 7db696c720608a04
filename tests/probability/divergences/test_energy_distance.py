"""The energy distance against its form with distribution functions, and its properties."""

import pytest
import torch

from parnassus.probability import energy_distance


def test_one_dimensional_energy_distance_matches_the_integral_of_cdfs() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(40, dtype=torch.float64), 2 * torch.randn(30, dtype=torch.float64) + 1
    points = torch.cat([x, y]).sort().values
    midpoints = (points[1:] + points[:-1]) / 2
    gap = (x <= midpoints[:, None]).double().mean(1) - (y <= midpoints[:, None]).double().mean(1)
    expected = 2 * (gap.square() * points.diff()).sum()
    torch.testing.assert_close(energy_distance(x[:, None], y[:, None]), expected)


def test_energy_distance_is_zero_only_for_equal_samples() -> None:
    torch.manual_seed(0)
    x = torch.randn(50, 3, dtype=torch.float64)
    torch.testing.assert_close(float(energy_distance(x, x[torch.randperm(50)])), 0.0, atol=1e-12, rtol=0)
    same, shifted = (float(energy_distance(x, torch.randn(50, 3, dtype=torch.float64) + shift)) for shift in (0.0, 1.0))
    assert 0 < same < shifted


def test_energy_distance_of_two_points_is_twice_their_distance() -> None:
    assert float(energy_distance(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))) == pytest.approx(10.0)


def test_empty_samples_raise_value_error() -> None:
    with pytest.raises(ValueError, match="must be non-empty; got 0 and 2"):
        energy_distance(torch.zeros(0, 1), torch.zeros(2, 1))
