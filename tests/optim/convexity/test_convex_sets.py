"""The randomised convexity test of sets, and set operations."""

import pytest
import torch
from torch import Tensor

from parnassus.optim import find_nonconvex_segment, intersection, sublevel_set, union


def source() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def square(count: int = 2_000) -> Tensor:
    return 4 * torch.rand(count, 2, generator=source(), dtype=torch.float64) - 2


def disc(points: Tensor) -> Tensor:
    return points.square().sum(-1) <= 1


def crescent(points: Tensor) -> Tensor:
    return disc(points) & ((points - torch.tensor([0.7, 0.0])).square().sum(-1) > 0.5)


def test_a_nonconvex_segment_is_a_counterexample() -> None:
    found = find_nonconvex_segment(crescent, square(), generator=source())
    assert found is not None
    ends = torch.stack([found.a, found.b])
    assert crescent(ends).all()
    assert not crescent(found.point[None]).any()
    assert 0 <= found.weight <= 1
    torch.testing.assert_close(found.point, found.weight * found.a + (1 - found.weight) * found.b)


def test_a_disc_has_no_nonconvex_segment() -> None:
    assert find_nonconvex_segment(disc, square(), generator=source()) is None


def test_a_small_missing_corner_is_found() -> None:
    """One corner of the square is cut out, a fortieth of its area."""

    def without_corner(points: Tensor) -> Tensor:
        return ~(points > 2 - 4 * 0.16).all(-1)

    assert find_nonconvex_segment(without_corner, square(), generator=source()) is not None


def shifted(points: Tensor) -> Tensor:
    return disc(points - 0.5)


def test_intersection_and_union_are_logical_and_and_or() -> None:
    points = square()
    torch.testing.assert_close(intersection(disc, shifted)(points), disc(points) & shifted(points))
    torch.testing.assert_close(union(disc, shifted)(points), disc(points) | shifted(points))


def test_a_sublevel_set_of_the_square_is_a_disc() -> None:
    points = square()
    assert bool((sublevel_set(lambda x: x.square().sum(), 1.0)(points) == disc(points)).all())


def test_fewer_than_two_points_in_the_set_raise() -> None:
    with pytest.raises(ValueError, match="at least two points in the set; got 0 of 2000"):
        find_nonconvex_segment(disc, square() + 10, generator=source())
