"""Rational-quadratic splines against zuko and normflows with the same knots."""

from math import expm1, log

import pytest
import torch
from torch import Tensor

from parnassus.flows import Knots, SplineSynthesizer, inverse_rational_quadratic_spline, rational_quadratic_spline

BINS, BOUND = 8, 5.0
TAU = SplineSynthesizer(BINS, BOUND)


@pytest.fixture
def inputs_and_parameters() -> tuple[Tensor, Tensor]:
    """Values inside and outside the interval, and the spline parameters of each."""
    generator = torch.Generator().manual_seed(0)
    z = torch.linspace(-7, 7, 2_001, dtype=torch.float64)
    return z, 2 * torch.randn(len(z), TAU.size, dtype=torch.float64, generator=generator)


def test_matches_zuko_in_both_directions(inputs_and_parameters: tuple[Tensor, Tensor]) -> None:
    transforms = pytest.importorskip("zuko.transforms")
    z, h = inputs_and_parameters
    reference = transforms.MonotonicRQSTransform(*h.split([BINS, BINS, BINS - 1], -1), bound=BOUND)
    knots = Knots(reference.horizontal, reference.vertical, reference.derivatives)
    x, log_derivative = reference.call_and_ladj(z)
    actual, actual_log_derivative = rational_quadratic_spline(z, knots)
    torch.testing.assert_close(actual, x, atol=1e-12, rtol=0)
    torch.testing.assert_close(actual_log_derivative, log_derivative, atol=1e-12, rtol=0)
    torch.testing.assert_close(inverse_rational_quadratic_spline(x, knots)[0], reference.inv(x), atol=1e-10, rtol=0)


def normflows_spline(values: Tensor, h: Tensor, *, inverse: bool) -> tuple[Tensor, Tensor]:
    """The spline of normflows, with the offset that makes its initial slopes equal to 1."""
    splines = pytest.importorskip("normflows.utils.splines")
    widths, heights, slopes = h.split([BINS, BINS, BINS - 1], -1)
    offset = log(expm1(1 - TAU.min_fraction))
    image, log_derivative = splines.unconstrained_rational_quadratic_spline(
        values, widths, heights, slopes + offset, inverse=inverse, tail_bound=BOUND
    )
    return image, log_derivative


def test_matches_normflows_in_both_directions(inputs_and_parameters: tuple[Tensor, Tensor]) -> None:
    z, h = inputs_and_parameters
    x, log_derivative = normflows_spline(z, h, inverse=False)
    actual, actual_log_derivative = TAU(z, h)
    torch.testing.assert_close(actual, x, atol=1e-10, rtol=0)
    torch.testing.assert_close(actual_log_derivative, log_derivative, atol=1e-10, rtol=0)
    back, log_derivative_back = normflows_spline(x, h, inverse=True)
    torch.testing.assert_close(TAU.inverse(x, h)[0], back, atol=1e-9, rtol=0)
    torch.testing.assert_close(TAU.inverse(x, h)[1], log_derivative_back, atol=1e-8, rtol=0)


def test_inverse_is_finite_in_float32_where_zuko_and_normflows_fail() -> None:
    """In float32 some discriminants fall below zero: normflows raises, zuko returns NaN."""
    transforms = pytest.importorskip("zuko.transforms")
    generator = torch.Generator().manual_seed(3)
    z = 10 * torch.rand(400_000, generator=generator) - 5
    h = 9 * torch.randn(len(z), TAU.size, generator=generator)
    x, _ = TAU(z, h)
    with pytest.raises(AssertionError):
        normflows_spline(x, h, inverse=True)
    knots = TAU.knots(h)
    reference = transforms.MonotonicRQSTransform(*h.split([BINS, BINS, BINS - 1], -1), bound=BOUND)
    reference.horizontal, reference.vertical, reference.derivatives = knots.x, knots.y, knots.derivative
    assert reference.inv(x).isnan().any()
    back, log_derivative = TAU.inverse(x, h)
    assert torch.isfinite(back).all()
    assert torch.isfinite(log_derivative).all()
