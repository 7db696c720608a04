"""Grid densities with known marginals, and box density estimates."""

import pytest
import torch

from parnassus.probability import GridDensity, box_density

X = torch.linspace(0, 1, 101, dtype=torch.float64)
Y = torch.linspace(0, 2, 201, dtype=torch.float64)


def test_marginals_and_conditional_match_closed_form() -> None:
    """On [0, 1] × [0, 2] the density (x + y) / 3 has p_X = (2x + 2)/3 and p_Y = (½ + y)/3."""
    joint = GridDensity.from_function(lambda x, y: (x + y) / 3, x=X, y=Y)
    assert float(joint.mass) == pytest.approx(1.0)
    torch.testing.assert_close(joint.marginal_x, (2 * X + 2) / 3)
    torch.testing.assert_close(joint.marginal_y, (0.5 + Y) / 3)
    torch.testing.assert_close(joint.conditional_x, (X + Y[:, None]) / (0.5 + Y[:, None]))
    assert float((joint.values - joint.product).abs().max()) > 0.1


def test_product_density_is_the_product_of_its_marginals() -> None:
    joint = GridDensity.from_function(lambda x, y: 2 * x * y / 2, x=X, y=Y)
    torch.testing.assert_close(joint.product, joint.values)


def test_conditional_is_the_marginal_where_p_y_is_zero() -> None:
    joint = GridDensity.from_function(lambda x, y: (y < 1) * torch.ones_like(x), x=X, y=Y)
    torch.testing.assert_close(joint.conditional_x[-1], joint.marginal_x)


def test_box_density_counts_points_per_area() -> None:
    points = torch.tensor([[0.0, 0.0], [0.1, 0.1], [0.4, 0.0], [2.0, 2.0]])
    assert float(box_density(points, centre=torch.zeros(2), width=0.5)) == pytest.approx(0.5 / 0.25)


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match="must not be negative or NaN; the smallest value is -1"):
        GridDensity.from_function(lambda x, y: x - y / 2, x=X, y=Y)
    with pytest.raises(ValueError, match="strictly increasing along both axes"):
        GridDensity.from_function(lambda x, y: x + y, x=X.flip(0), y=Y)
    with pytest.raises(ValueError, match="width must be positive; got width=0"):
        box_density(torch.zeros(1, 2), centre=torch.zeros(2), width=0.0)
