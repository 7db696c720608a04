"""The checker of convex sets: what it finds is a proof, and it finds what can be found."""

import pytest
import torch
from torch import Tensor

from parnassus.optim import below_set, find_escape, intersection, union


def source() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def square(count: int = 2_000) -> Tensor:
    return 4 * torch.rand(count, 2, generator=source(), dtype=torch.float64) - 2


def disc(points: Tensor) -> Tensor:
    return points.square().sum(-1) <= 1


def crescent(points: Tensor) -> Tensor:
    return disc(points) & ((points - torch.tensor([0.7, 0.0])).square().sum(-1) > 0.5)


def test_an_escape_proves_itself() -> None:
    found = find_escape(crescent, square(), generator=source())
    assert found is not None
    ends = torch.stack([found.a, found.b])
    assert crescent(ends).all()
    assert not crescent(found.point[None]).any()
    assert 0 <= found.weight <= 1
    torch.testing.assert_close(found.point, found.weight * found.a + (1 - found.weight) * found.b)


def test_a_disc_has_no_escape() -> None:
    assert find_escape(disc, square(), generator=source()) is None


def test_a_single_bite_is_found_with_enough_tries() -> None:
    """One corner of a square cut out: a fortieth of its area."""

    def bitten(points: Tensor) -> Tensor:
        return ~(points > 2 - 4 * 0.16).all(-1)

    assert find_escape(bitten, square(), generator=source()) is not None


def shifted(points: Tensor) -> Tensor:
    return disc(points - 0.5)


def test_sets_combine_as_logic_says() -> None:
    points = square()
    torch.testing.assert_close(intersection(disc, shifted)(points), disc(points) & shifted(points))
    torch.testing.assert_close(union(disc, shifted)(points), disc(points) | shifted(points))


def test_a_below_set_of_the_square_is_a_disc() -> None:
    points = square()
    assert bool((below_set(lambda x: x.square().sum(), 1.0)(points) == disc(points)).all())


def test_a_cloud_must_meet_the_set_twice() -> None:
    with pytest.raises(ValueError, match="at least two points in the set; got 0 of 2000"):
        find_escape(disc, square() + 10, generator=source())
