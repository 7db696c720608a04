"""Finite probability spaces, random variables on them, and the laws they push forward (Diehl sec. 5).

A space is a vector P of masses, a random variable a value for each outcome.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.probability.expectation import expectation
from parnassus.probability.simplex import require_distribution

MOST = 12  # values of a variable whose 2ⁿ events are still listed


@dataclass(frozen=True)
class Law:
    """A probability measure on finitely many values, numbers or vectors (Diehl sec. 5)."""

    values: Float[Tensor, " atoms *event"]
    p: Float[Tensor, " masses"]

    def __post_init__(self) -> None:
        require_distribution(self.p)
        if len(self.values) != len(self.p):
            raise ValueError(f"a law needs a mass for every value; got {len(self.values)} values, {len(self.p)} masses")

    def expectation(self, function: Callable[[Tensor], Tensor]) -> Float[Tensor, "*event"]:
        """∫ f dP_X = Σ_x f(x) P_X(x), where f takes the values along the first axis."""
        return expectation(function(self.values), self.p)

    def cdf(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """P[X ≤ x] of a law on numbers."""
        ordered, total = self._stairs
        return total[torch.searchsorted(ordered, x.contiguous(), right=True)]

    @cached_property
    def _stairs(self) -> tuple[Tensor, Tensor]:
        """The values in order, and P[X < the first], P[X ≤ the first], P[X ≤ the second], …"""
        ordered, order = self.values.sort()
        return ordered, torch.cat([self.p.new_zeros(1), self.p[order].cumsum(0)])


def push_forward(values: Float[Tensor, " outcomes *event"], p: Float[Tensor, " outcomes"]) -> Law:
    """The law P_X(A) = P[X ∈ A] of a random variable: masses of outcomes with the same value add up (Diehl sec. 5)."""
    require_distribution(p)
    atoms, place = torch.unique(values, dim=0, return_inverse=True)
    return Law(atoms, p.new_zeros(len(atoms)).index_add(0, place, p))


def empirical_law(sample: Float[Tensor, " draws *event"]) -> Law:
    """The law that gives each of n draws the mass 1/n."""
    if len(sample) == 0:
        raise ValueError("an empirical law needs at least one draw")
    return Law(sample, sample.new_full((len(sample),), 1 / len(sample)))


@dataclass(frozen=True)
class JointLaw:
    """The law of a pair (X, Y) as a table: P[X = x_i, Y = y_j] in row i and column j (Diehl sec. 5)."""

    x: Float[Tensor, " rows *event_x"]
    y: Float[Tensor, " columns *event_y"]
    table: Float[Tensor, "rows columns"]


def joint_law(
    x: Float[Tensor, " outcomes *event_x"], y: Float[Tensor, " outcomes *event_y"], p: Float[Tensor, " outcomes"]
) -> JointLaw:
    """The law of (X, Y), two random variables on the same space (Diehl sec. 5)."""
    require_distribution(p)
    x_atoms, row = torch.unique(x, dim=0, return_inverse=True)
    y_atoms, column = torch.unique(y, dim=0, return_inverse=True)
    masses = p.new_zeros(len(x_atoms) * len(y_atoms)).index_add(0, row * len(y_atoms) + column, p)
    return JointLaw(x_atoms, y_atoms, masses.view(len(x_atoms), len(y_atoms)))


def events(count: int) -> Bool[Tensor, "events count"]:
    """All 2ⁿ subsets of n values, the empty one first, as rows of truth values."""
    if not 0 <= count <= MOST:
        raise ValueError(f"2ⁿ events are listed for at most {MOST} values; got {count}")
    return (torch.arange(2**count)[:, None] >> torch.arange(count) & 1).bool()


def largest_event_gap(first: Float[Tensor, "rows columns"], second: Float[Tensor, "rows columns"]) -> Float[Tensor, ""]:
    """max_{A,B} |P[X∈A, Y∈B] − Q[X∈A, Y∈B]| of two tables, all A listed, the best B found for each.

    0 exactly if the tables agree on all events. Given A, the best B holds the columns where the difference is positive.
    """
    difference = events(len(first)).to(first) @ (first - second)
    return torch.maximum(difference.clamp(min=0).sum(1), (-difference).clamp(min=0).sum(1)).max()


def require_joint(table: Float[Tensor, "rows columns"]) -> None:
    """Raise a ValueError unless the entries of the table are masses that sum to one."""
    require_distribution(table.flatten(), "the joint table")
