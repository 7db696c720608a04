"""The energy distance by the area between distribution functions, and its properties."""

import pytest
import torch

from parnassus.probability import energy_distance


def test_on_the_line_it_is_the_squared_area_between_the_distribution_functions() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(40, dtype=torch.float64), 2 * torch.randn(30, dtype=torch.float64) + 1
    places = torch.cat([x, y]).sort().values
    middle = (places[1:] + places[:-1]) / 2
    gap = (x <= middle[:, None]).double().mean(1) - (y <= middle[:, None]).double().mean(1)
    area = 2 * (gap.square() * places.diff()).sum()
    torch.testing.assert_close(energy_distance(x[:, None], y[:, None]), area)


def test_equal_samples_have_none_and_others_some() -> None:
    torch.manual_seed(0)
    x = torch.randn(50, 3, dtype=torch.float64)
    torch.testing.assert_close(float(energy_distance(x, x[torch.randperm(50)])), 0.0, atol=1e-12, rtol=0)
    near, far = (float(energy_distance(x, torch.randn(50, 3, dtype=torch.float64) + shift)) for shift in (0.0, 1.0))
    assert 0 < near < far


def test_two_points_are_twice_their_distance_apart() -> None:
    assert float(energy_distance(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))) == pytest.approx(10.0)


def test_nothing_has_no_distance() -> None:
    with pytest.raises(ValueError, match="must be non-empty; got 0 and 2"):
        energy_distance(torch.zeros(0, 1), torch.zeros(2, 1))
