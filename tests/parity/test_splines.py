"""Our splines against those of zuko and normflows: the same knots, the same numbers."""

from math import expm1, log

import pytest
import torch
from torch import Tensor

from parnassus.flows import Knots, SplineSynthesizer, inverse_rational_quadratic_spline, rational_quadratic_spline

BINS, BOUND = 8, 5.0
TAU = SplineSynthesizer(BINS, BOUND)


@pytest.fixture
def steered() -> tuple[Tensor, Tensor]:
    """Numbers inside and outside the square, and what steers the spline of each."""
    source = torch.Generator().manual_seed(0)
    z = torch.linspace(-7, 7, 2_001, dtype=torch.float64)
    return z, 2 * torch.randn(len(z), TAU.size, dtype=torch.float64, generator=source)


def test_zuko_agrees_in_both_directions(steered: tuple[Tensor, Tensor]) -> None:
    transforms = pytest.importorskip("zuko.transforms")
    z, h = steered
    theirs = transforms.MonotonicRQSTransform(*h.split([BINS, BINS, BINS - 1], -1), bound=BOUND)
    knots = Knots(theirs.horizontal, theirs.vertical, theirs.derivatives)
    x, log_derivative = theirs.call_and_ladj(z)
    ours, ours_log_derivative = rational_quadratic_spline(z, knots)
    torch.testing.assert_close(ours, x, atol=1e-12, rtol=0)
    torch.testing.assert_close(ours_log_derivative, log_derivative, atol=1e-12, rtol=0)
    torch.testing.assert_close(inverse_rational_quadratic_spline(x, knots)[0], theirs.inv(x), atol=1e-10, rtol=0)


def _normflows(values: Tensor, h: Tensor, *, inverse: bool) -> tuple[Tensor, Tensor]:
    """Theirs begins with slopes other than 1 unless the offset that we add inside is added outside."""
    splines = pytest.importorskip("normflows.utils.splines")
    widths, heights, slopes = h.split([BINS, BINS, BINS - 1], -1)
    offset = log(expm1(1 - TAU.min_fraction))
    image, log_derivative = splines.unconstrained_rational_quadratic_spline(
        values, widths, heights, slopes + offset, inverse=inverse, tail_bound=BOUND
    )
    return image, log_derivative


def test_normflows_agrees_in_both_directions(steered: tuple[Tensor, Tensor]) -> None:
    z, h = steered
    x, log_derivative = _normflows(z, h, inverse=False)
    ours, ours_log_derivative = TAU(z, h)
    torch.testing.assert_close(ours, x, atol=1e-10, rtol=0)
    torch.testing.assert_close(ours_log_derivative, log_derivative, atol=1e-10, rtol=0)
    back, log_derivative_back = _normflows(x, h, inverse=True)
    torch.testing.assert_close(TAU.inverse(x, h)[0], back, atol=1e-9, rtol=0)
    torch.testing.assert_close(TAU.inverse(x, h)[1], log_derivative_back, atol=1e-8, rtol=0)


def test_where_rounding_stops_theirs_ours_goes_on() -> None:
    """In float32 some discriminants fall below zero: normflows asserts, zuko gives NaN, we give the root."""
    transforms = pytest.importorskip("zuko.transforms")
    source = torch.Generator().manual_seed(3)
    z = 10 * torch.rand(400_000, generator=source) - 5
    h = 9 * torch.randn(len(z), TAU.size, generator=source)
    x, _ = TAU(z, h)
    with pytest.raises(AssertionError):
        _normflows(x, h, inverse=True)
    knots = TAU.knots(h)
    theirs = transforms.MonotonicRQSTransform(*h.split([BINS, BINS, BINS - 1], -1), bound=BOUND)
    theirs.horizontal, theirs.vertical, theirs.derivatives = knots.x, knots.y, knots.derivative
    assert theirs.inv(x).isnan().any()
    back, log_derivative = TAU.inverse(x, h)
    assert torch.isfinite(back).all()
    assert torch.isfinite(log_derivative).all()
