"""Convex sets: the segment between two members stays inside (Zhao sec. 12)."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.func import vmap

from parnassus.optim.problems import Function

Member = Callable[[Tensor], Tensor]
"""Which rows of (count, dim) lie in the set."""


class Segment(NamedTuple):
    """λa + (1 − λ)b between two points."""

    a: Float[Tensor, " dim"]
    b: Float[Tensor, " dim"]
    weight: float  # λ

    @property
    def point(self) -> Float[Tensor, " dim"]:
        return self.weight * self.a + (1 - self.weight) * self.b


def find_escape(
    member: Member, cloud: Float[Tensor, "count dim"], *, generator: torch.Generator, tries: int = 10_000
) -> Segment | None:
    """A segment with both ends in the set and the point at λ outside, or None if `tries` random ones stay inside.

        X convex:  λa + (1 − λ)b ∈ X  for all a, b ∈ X and λ ∈ [0, 1]

    The ends are drawn from those points of the cloud that lie in the set. A segment found proves that the set is not
    convex; None proves nothing, but is what a convex set always gives.
    """
    inside = cloud[member(cloud)]
    if len(inside) < 2:
        raise ValueError(f"need a cloud with at least two points in the set; got {len(inside)} of {len(cloud)}")
    first, second = torch.randint(len(inside), (2, tries), generator=generator)
    weight = torch.rand(tries, generator=generator, dtype=cloud.dtype)
    points = weight[:, None] * inside[first] + (1 - weight[:, None]) * inside[second]
    outside = (~member(points)).nonzero()[:, 0]
    if not len(outside):
        return None
    one = outside[0]
    return Segment(inside[first[one]], inside[second[one]], float(weight[one]))


def intersection(*members: Member) -> Member:
    """The points in all of the sets; of convex sets it is convex (Zhao sec. 12)."""

    def member(points: Float[Tensor, "count dim"]) -> Bool[Tensor, " count"]:
        return torch.stack([each(points) for each in members]).all(0)

    return member


def union(*members: Member) -> Member:
    """The points in one of the sets or more; of convex sets it need not be convex (Zhao sec. 12)."""

    def member(points: Float[Tensor, "count dim"]) -> Bool[Tensor, " count"]:
        return torch.stack([each(points) for each in members]).any(0)

    return member


def below_set(function: Function, level: float) -> Member:
    """S_b = {x : f(x) ≤ b}, convex whenever f is (Zhao sec. 12).

    f(λx₁ + (1 − λ)x₂) ≤ λf(x₁) + (1 − λ)f(x₂) ≤ λb + (1 − λ)b = b
    """

    def member(points: Float[Tensor, "count dim"]) -> Bool[Tensor, " count"]:
        values: Tensor = vmap(function)(points)
        return values <= level

    return member
