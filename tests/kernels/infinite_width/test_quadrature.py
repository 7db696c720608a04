"""Gauss-Hermite quadrature against exact moments."""

from itertools import pairwise
from math import factorial

import pytest
import torch
from torch import Tensor

from parnassus.kernels import Quadrature, gauss_hermite, normaliser


@pytest.mark.parametrize("nodes", [1, 3, 8, 40])
def test_normal_moments_are_exact_below_twice_the_nodes(nodes: int) -> None:
    z, weight = gauss_hermite(nodes)
    for power in range(0, min(2 * nodes, 13), 2):
        exact = factorial(power) / (2 ** (power // 2) * factorial(power // 2))
        assert float(weight @ z**power) == pytest.approx(exact, rel=1e-12)
        assert float(weight @ z ** (power + 1)) == pytest.approx(0.0, abs=1e-9)


def cubic(x: Tensor) -> Tensor:
    return x**3 - 3 * x + 0.5


def test_polynomials_are_exact() -> None:
    """E He₃(u)He₃(v) = 6 ρ³, derivatives 3 He₂ with E = 18 ρ²; the constant adds its square."""
    rho = torch.linspace(-1, 1, 9, dtype=torch.float64)
    one = torch.ones_like(rho)
    value, derivative = Quadrature(cubic, nodes=4).expect(rho, one, one)
    torch.testing.assert_close(value, 6 * rho**3 + 0.25)
    torch.testing.assert_close(derivative, 18 * rho**2)
    torch.testing.assert_close(Quadrature(cubic, nodes=4).second_moment(one), 6.25 * one)


def test_error_for_tanh_decreases_with_the_number_of_nodes() -> None:
    errors = [abs(normaliser(Quadrature(torch.tanh, nodes)) - 2.5361754332) for nodes in (10, 20, 40, 80)]
    assert all(after < before / 5 for before, after in pairwise(errors))
    assert errors[2] < 3e-6


def test_expectations_are_symmetric() -> None:
    quadrature = Quadrature(torch.sigmoid)
    cross, left, right = (torch.tensor([value], dtype=torch.float64) for value in (0.3, 0.8, 1.5))
    for one, other in zip(quadrature.expect(cross, left, right), quadrature.expect(cross, right, left), strict=True):
        torch.testing.assert_close(one, other, atol=1e-10, rtol=0)


@pytest.mark.parametrize("nodes", [0, -3, 251])
def test_invalid_numbers_of_nodes_raise_value_error(nodes: int) -> None:
    with pytest.raises(ValueError, match=f"between 1 and 250.*got nodes={nodes}"):
        Quadrature(torch.tanh, nodes)
