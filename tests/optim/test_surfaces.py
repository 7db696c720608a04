"""Surfaces: known values, minimisers and shapes."""

import pytest
import torch
from torch.func import grad, jacrev

from parnassus.optim import Surface, argmin, beale, himmelblau, rosenbrock, saddle, valley

SURFACES = {
    "valley": valley(),
    "rosenbrock": rosenbrock(),
    "beale": beale(),
    "himmelblau": himmelblau(),
    "saddle": saddle(),
}


@pytest.mark.parametrize("name", SURFACES)
def test_at_each_minimiser_there_is_no_slope_and_the_curvature_is_upwards(name: str) -> None:
    surface = SURFACES[name]
    for place in surface.minimisers:
        theta = torch.tensor(place, dtype=torch.float64)
        assert grad(surface)(theta).abs().max() < 1e-12
        assert torch.linalg.eigvalsh(jacrev(grad(surface))(theta)).min() > 0
        assert float(surface(theta)) == pytest.approx(surface.least, abs=1e-20)


@pytest.mark.parametrize("name", SURFACES)
def test_nothing_in_the_window_is_lower_and_the_start_is_in_it(name: str) -> None:
    surface = SURFACES[name]
    across, up, levels = surface.levels(31, 21)
    assert levels.shape == (21, 31)
    assert float(levels.min()) >= surface.least - 1e-12
    assert across[0] <= surface.start[0] <= across[-1]
    assert up[0] <= surface.start[1] <= up[-1]
    corner = torch.stack([across[4], up[7]]).double()
    torch.testing.assert_close(levels[7, 4], surface(corner))


def test_values_that_can_be_looked_up() -> None:
    values = {
        "rosenbrock": ([-1.2, 1.0], 24.2),
        "beale": ([0.0, 0.0], 1.5**2 + 2.25**2 + 2.625**2),
        "himmelblau": ([0.0, 0.0], 170.0),
        "saddle": ([0.0, 0.0], 0.0),
        "valley": ([1.0, 1.0], 10.5),
    }
    for name, (place, value) in values.items():
        assert float(SURFACES[name](torch.tensor(place, dtype=torch.float64))) == pytest.approx(value)


def test_argmin_is_a_set() -> None:
    candidates = torch.tensor([[-1.0], [0.5], [1.0]])
    assert argmin(lambda x: (x[:, 0].square() - 1).square(), candidates).tolist() == [[-1.0], [1.0]]
    assert len(argmin(lambda x: x[:, 0].square(), candidates, slack=1.0)) == 3


def test_without_minimisers_there_is_no_least_value() -> None:
    slope = Surface(lambda theta: theta.sum(-1), (), start=(0.0, 0.0), across=(-1.0, 1.0), up=(-1.0, 1.0))
    assert slope.least == -torch.inf


def test_a_valley_that_is_none_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"the curvature must be positive; got curvature=0\.0"):
        valley(0.0)
