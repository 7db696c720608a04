"""Convex sets: membership functions, set operations and a randomised convexity test (Zhao sec. 12)."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.func import vmap

from parnassus.optim.landscapes.problems import Function

Membership = Callable[[Tensor], Tensor]
"""Membership function of a set: which rows of points (count, dim) lie in it."""


class Segment(NamedTuple):
    """The segment between two points, with one point λa + (1 − λ)b on it.

    >>> Segment(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]), weight=0.25).point.tolist()
    [0.25, 0.75]
    """

    a: Float[Tensor, " dim"]
    b: Float[Tensor, " dim"]
    weight: float  # λ

    @property
    def point(self) -> Float[Tensor, " dim"]:
        return self.weight * self.a + (1 - self.weight) * self.b


def find_nonconvex_segment(
    contains: Membership, points: Float[Tensor, "count dim"], *, generator: torch.Generator, num_trials: int = 10_000
) -> Segment | None:
    """Search random segments for one with both ends in the set and an interior point outside; None if none is found.

        X convex:  λa + (1 − λ)b ∈ X  for all a, b ∈ X and λ ∈ [0, 1]

    The ends are sampled from those of `points` that lie in the set. A segment found proves that the set is not convex;
    None is not a proof of convexity.
    """
    inside = points[contains(points)]
    if len(inside) < 2:
        raise ValueError(f"need at least two points in the set; got {len(inside)} of {len(points)}")
    a, b, weight = random_pairs(inside, num_trials, generator)
    combinations = weight[:, None] * a + (1 - weight[:, None]) * b
    outside = (~contains(combinations)).nonzero()[:, 0]
    if not len(outside):
        return None
    index = outside[0]
    return Segment(a[index], b[index], float(weight[index]))


def random_pairs(
    points: Float[Tensor, "count dim"], num_pairs: int, generator: torch.Generator
) -> tuple[Float[Tensor, "pairs dim"], Float[Tensor, "pairs dim"], Float[Tensor, " pairs"]]:
    """Random pairs of the points, with a random weight λ in [0, 1) for each pair."""
    first, second = torch.randint(len(points), (2, num_pairs), generator=generator)
    return points[first], points[second], torch.rand(num_pairs, generator=generator, dtype=points.dtype)


def intersection(*sets: Membership) -> Membership:
    """The intersection of sets; that of convex sets is convex (Zhao sec. 12)."""

    def contains(points: Float[Tensor, "count dim"]) -> Bool[Tensor, " count"]:
        return torch.stack([each(points) for each in sets]).all(0)

    return contains


def union(*sets: Membership) -> Membership:
    """The union of sets; that of convex sets need not be convex (Zhao sec. 12)."""

    def contains(points: Float[Tensor, "count dim"]) -> Bool[Tensor, " count"]:
        return torch.stack([each(points) for each in sets]).any(0)

    return contains


def sublevel_set(function: Function, level: float) -> Membership:
    """The sublevel set S_b = {x : f(x) ≤ b}, convex whenever f is (Zhao sec. 12).

    f(λx₁ + (1 − λ)x₂) ≤ λf(x₁) + (1 − λ)f(x₂) ≤ λb + (1 − λ)b = b
    """

    def contains(points: Float[Tensor, "count dim"]) -> Bool[Tensor, " count"]:
        values: Tensor = vmap(function)(points)
        return values <= level

    return contains
