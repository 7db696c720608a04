"""Surfaces: known values, minimisers and shapes."""

import pytest
import torch
from torch.func import grad, jacrev

from parnassus.optim import Surface, argmin_set, beale, himmelblau, quadratic_valley, rosenbrock, saddle

SURFACES = {
    "valley": quadratic_valley(),
    "rosenbrock": rosenbrock(),
    "beale": beale(),
    "himmelblau": himmelblau(),
    "saddle": saddle(),
}


@pytest.mark.parametrize("name", SURFACES)
def test_minimisers_have_zero_gradient_and_a_positive_definite_hessian(name: str) -> None:
    surface = SURFACES[name]
    for point in surface.minimisers:
        theta = torch.tensor(point, dtype=torch.float64)
        assert grad(surface)(theta).abs().max() < 1e-12
        assert torch.linalg.eigvalsh(jacrev(grad(surface))(theta)).min() > 0
        assert float(surface(theta)) == pytest.approx(surface.minimum, abs=1e-20)


@pytest.mark.parametrize("name", SURFACES)
def test_grid_contains_the_start_and_no_value_below_the_minimum(name: str) -> None:
    surface = SURFACES[name]
    x, y, values = surface.evaluate_grid(31, 21)
    assert values.shape == (21, 31)
    assert float(values.min()) >= surface.minimum - 1e-12
    assert x[0] <= surface.start[0] <= x[-1]
    assert y[0] <= surface.start[1] <= y[-1]
    corner = torch.stack([x[4], y[7]]).double()
    torch.testing.assert_close(values[7, 4], surface(corner))


def test_known_values() -> None:
    values = {
        "rosenbrock": ([-1.2, 1.0], 24.2),
        "beale": ([0.0, 0.0], 1.5**2 + 2.25**2 + 2.625**2),
        "himmelblau": ([0.0, 0.0], 170.0),
        "saddle": ([0.0, 0.0], 0.0),
        "valley": ([1.0, 1.0], 10.5),
    }
    for name, (point, value) in values.items():
        assert float(SURFACES[name](torch.tensor(point, dtype=torch.float64))) == pytest.approx(value)


def test_argmin_is_a_set() -> None:
    candidates = torch.tensor([[-1.0], [0.5], [1.0]])
    assert argmin_set(lambda x: (x[:, 0].square() - 1).square(), candidates).tolist() == [[-1.0], [1.0]]
    assert len(argmin_set(lambda x: x[:, 0].square(), candidates, tolerance=1.0)) == 3


def test_surface_without_minimisers_has_minimum_minus_infinity() -> None:
    surface = Surface(lambda theta: theta.sum(-1), (), start=(0.0, 0.0), x_range=(-1.0, 1.0), y_range=(-1.0, 1.0))
    assert surface.minimum == -torch.inf


def test_valley_without_curvature_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"the curvature must be positive; got curvature=0\.0"):
        quadratic_valley(0.0)
