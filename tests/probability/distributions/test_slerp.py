"""Spherical interpolation: equal angles, and norms interpolated linearly."""

import pytest
import torch

from parnassus.probability import standard_normal
from parnassus.probability.distributions.slerp import slerp

DOUBLE = torch.float64
ENDS = standard_normal(2, 5, 7)


def test_slerp_interpolates_the_ends_and_is_symmetric() -> None:
    start, end = ENDS
    torch.testing.assert_close(slerp(start, end, 0.0), start)
    torch.testing.assert_close(slerp(start, end, 1.0), end)
    torch.testing.assert_close(slerp(start, end, 0.3), slerp(end, start, 0.7))


def test_angles_are_equal_and_norms_are_linear() -> None:
    start, end = ENDS[:, 0]
    fractions = torch.linspace(0, 1, 9, dtype=DOUBLE)[:, None]
    points = slerp(start, end, fractions)
    norms = points.norm(dim=1)
    torch.testing.assert_close(norms, ((1 - fractions) * start.norm() + fractions * end.norm())[:, 0])
    cosines = (points[1:] * points[:-1]).sum(1) / (norms[1:] * norms[:-1])
    torch.testing.assert_close(cosines, cosines[:1].expand_as(cosines))
    torch.testing.assert_close(points[3], slerp(start, end, 3 / 8))


def test_parallel_and_opposite_ends_are_interpolated_linearly() -> None:
    start = ENDS[0]
    for factor in (1.0, 2.0, -1.0, -3.0):
        torch.testing.assert_close(slerp(start, factor * start, 0.25), (0.75 + 0.25 * factor) * start)


def test_end_at_the_origin_raises_value_error() -> None:
    with pytest.raises(ValueError, match="away from the origin"):
        slerp(ENDS[0], torch.zeros_like(ENDS[0]), 0.5)
