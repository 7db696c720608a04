"""The randomised convexity test of sets, and set operations."""

import pytest
import torch
from torch import Tensor

from parnassus.optim import find_nonconvex_segment, intersection, sublevel_set, union
from parnassus.probability import seeded_generator, uniform_samples


def sample_square(count: int = 2_000) -> Tensor:
    return 4 * uniform_samples(count, 2) - 2


def disc(points: Tensor) -> Tensor:
    return points.square().sum(-1) <= 1


def crescent(points: Tensor) -> Tensor:
    return disc(points) & ((points - torch.tensor([0.7, 0.0])).square().sum(-1) > 0.5)


def test_nonconvex_segment_is_a_counterexample() -> None:
    segment = find_nonconvex_segment(crescent, sample_square(), generator=seeded_generator())
    assert segment is not None
    ends = torch.stack([segment.a, segment.b])
    assert crescent(ends).all()
    assert not crescent(segment.point[None]).any()
    assert 0 <= segment.weight <= 1
    torch.testing.assert_close(segment.point, segment.weight * segment.a + (1 - segment.weight) * segment.b)


def test_disc_has_no_nonconvex_segment() -> None:
    assert find_nonconvex_segment(disc, sample_square(), generator=seeded_generator()) is None


def test_small_missing_corner_is_detected() -> None:
    """One corner of the square is cut out, a fortieth of its area."""

    def without_corner(points: Tensor) -> Tensor:
        return ~(points > 2 - 4 * 0.16).all(-1)

    assert find_nonconvex_segment(without_corner, sample_square(), generator=seeded_generator()) is not None


def shifted_disc(points: Tensor) -> Tensor:
    return disc(points - 0.5)


def test_intersection_and_union_are_logical_and_and_or() -> None:
    points = sample_square()
    torch.testing.assert_close(intersection(disc, shifted_disc)(points), disc(points) & shifted_disc(points))
    torch.testing.assert_close(union(disc, shifted_disc)(points), disc(points) | shifted_disc(points))


def test_sublevel_set_of_the_squared_norm_is_a_disc() -> None:
    points = sample_square()
    assert bool((sublevel_set(lambda x: x.square().sum(), 1.0)(points) == disc(points)).all())


def test_fewer_than_two_points_in_the_set_raise_value_error() -> None:
    with pytest.raises(ValueError, match="at least two points in the set; got 0 of 2000"):
        find_nonconvex_segment(disc, sample_square() + 10, generator=seeded_generator())
