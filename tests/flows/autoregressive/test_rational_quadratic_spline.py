"""Rational-quadratic splines through arbitrary knots."""

import torch

from parnassus.flows import Knots, inverse_rational_quadratic_spline, rational_quadratic_spline


def test_knots_on_a_line_give_a_linear_spline() -> None:
    x_knots = torch.tensor([[0.0, 1.0, 3.0]], dtype=torch.float64)
    knots = Knots(x_knots, 2 * x_knots + 1, torch.full_like(x_knots, 2.0))
    z = torch.tensor([0.7], dtype=torch.float64)
    x, log_derivative = rational_quadratic_spline(z, knots)
    torch.testing.assert_close(x, 2 * z + 1)
    torch.testing.assert_close(log_derivative.exp(), torch.full_like(z, 2.0))


def test_one_segment_matches_closed_form() -> None:
    """On [0, 1]² with end slopes ½ and 2, s = 1: τ = (ξ² + ½ ξ(1 − ξ)) / (1 + ½ ξ(1 − ξ)), at ½ equal to ⅓."""
    corner = torch.tensor([[0.0, 1.0]], dtype=torch.float64)
    knots = Knots(corner, corner, torch.tensor([[0.5, 2.0]], dtype=torch.float64))
    half = torch.tensor([0.5], dtype=torch.float64)
    torch.testing.assert_close(
        rational_quadratic_spline(half, knots)[0], torch.tensor([0.375 / 1.125], dtype=torch.float64)
    )
    torch.testing.assert_close(
        inverse_rational_quadratic_spline(torch.tensor([1 / 3], dtype=torch.float64), knots)[0], half
    )


def test_tails_are_linear_through_the_outer_knots() -> None:
    """The outer knots need not lie on the diagonal."""
    knots = Knots(torch.tensor([[-1.0, 0.0, 1.0]]), torch.tensor([[4.0, 5.0, 9.0]]), torch.tensor([[1.0, 2.0, 1.0]]))
    below, above = torch.tensor([-3.0]), torch.tensor([2.5])
    torch.testing.assert_close(rational_quadratic_spline(below, knots)[0], torch.tensor([2.0]))
    torch.testing.assert_close(rational_quadratic_spline(above, knots)[0], torch.tensor([10.5]))
    torch.testing.assert_close(inverse_rational_quadratic_spline(torch.tensor([10.5]), knots)[0], above)
