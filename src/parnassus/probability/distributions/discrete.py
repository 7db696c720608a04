"""Distributions on finitely many values: push-forwards, empirical and joint distributions (Diehl sec. 5).

A finite probability space is a vector P of probabilities, a random variable one value per outcome.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.probability.distributions.simplex import check_distribution
from parnassus.probability.expectations.expectation import expectation

MAX_VALUES = 12  # largest n for which all 2ⁿ events are enumerated


@dataclass(frozen=True)
class DiscreteDistribution:
    """A probability distribution on finitely many values, scalars or vectors (Diehl sec. 5).

    >>> die = DiscreteDistribution(torch.arange(1.0, 7.0), torch.full((6,), 1 / 6))
    >>> die.expectation(lambda x: x)
    tensor(3.5000)
    """

    values: Float[Tensor, " atoms *event"]
    p: Float[Tensor, " masses"]

    def __post_init__(self) -> None:
        check_distribution(self.p)
        if len(self.values) != len(self.p):
            raise ValueError(
                f"p must have one entry per value; got {len(self.values)} values, {len(self.p)} probabilities"
            )

    def expectation(self, function: Callable[[Tensor], Tensor]) -> Float[Tensor, "*event"]:
        """∫ f dP_X = Σ_x f(x) P_X(x), where f maps the values along the first axis."""
        return expectation(function(self.values), self.p)

    def cdf(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """P[X ≤ x] of a distribution on the real line."""
        ordered, cumulative = self._cumulative
        return cumulative[torch.searchsorted(ordered, x.contiguous(), right=True)]

    @cached_property
    def _cumulative(self) -> tuple[Tensor, Tensor]:
        """The sorted values x_1 ≤ x_2 ≤ …, and the probabilities 0, P[X ≤ x_1], P[X ≤ x_2], …"""
        ordered, order = self.values.sort()
        return ordered, torch.cat([self.p.new_zeros(1), self.p[order].cumsum(0)])


def push_forward(values: Float[Tensor, " outcomes *event"], p: Float[Tensor, " outcomes"]) -> DiscreteDistribution:
    """The distribution P_X(A) = P[X ∈ A] of a random variable; outcomes with equal values are merged (Diehl sec. 5)."""
    check_distribution(p)
    atoms, index = torch.unique(values, dim=0, return_inverse=True)
    return DiscreteDistribution(atoms, p.new_zeros(len(atoms)).index_add(0, index, p))


def empirical_distribution(sample: Float[Tensor, " draws *event"]) -> DiscreteDistribution:
    """The empirical distribution: probability 1/n for each of n draws."""
    if len(sample) == 0:
        raise ValueError("an empirical distribution needs at least one draw")
    return DiscreteDistribution(sample, sample.new_full((len(sample),), 1 / len(sample)))


@dataclass(frozen=True)
class JointDistribution:
    """The distribution of a pair (X, Y) as a table: P[X = x_i, Y = y_j] in row i and column j (Diehl sec. 5).

    >>> coin = torch.tensor([0.0, 1.0])
    >>> JointDistribution(coin, coin, torch.full((2, 2), 0.25)).table.sum(1)
    tensor([0.5000, 0.5000])
    """

    x: Float[Tensor, " rows *event_x"]
    y: Float[Tensor, " columns *event_y"]
    table: Float[Tensor, "rows columns"]


def joint_distribution(
    x: Float[Tensor, " outcomes *event_x"], y: Float[Tensor, " outcomes *event_y"], p: Float[Tensor, " outcomes"]
) -> JointDistribution:
    """The distribution of (X, Y), two random variables on the same space (Diehl sec. 5)."""
    check_distribution(p)
    x_atoms, row = torch.unique(x, dim=0, return_inverse=True)
    y_atoms, column = torch.unique(y, dim=0, return_inverse=True)
    masses = p.new_zeros(len(x_atoms) * len(y_atoms)).index_add(0, row * len(y_atoms) + column, p)
    return JointDistribution(x_atoms, y_atoms, masses.view(len(x_atoms), len(y_atoms)))


def events(count: int) -> Bool[Tensor, "events count"]:
    """All 2ⁿ subsets of n values, the empty one first, as rows of booleans."""
    if not 0 <= count <= MAX_VALUES:
        raise ValueError(
            f"count must lie between 0 and {MAX_VALUES}, as all 2ⁿ events are enumerated; got count={count}"
        )
    return (torch.arange(2**count)[:, None] >> torch.arange(count) & 1).bool()


def largest_event_gap(first: Float[Tensor, "rows columns"], second: Float[Tensor, "rows columns"]) -> Float[Tensor, ""]:
    """max_{A,B} |P[X∈A, Y∈B] − Q[X∈A, Y∈B]| of two tables, by enumeration of A and the maximising B for each.

    0 if and only if the tables are equal. Given A, the maximising B holds the columns of positive difference.
    """
    difference = events(len(first)).to(first) @ (first - second)
    return torch.maximum(difference.clamp(min=0).sum(1), (-difference).clamp(min=0).sum(1)).max()


def check_joint_table(table: Float[Tensor, "rows columns"]) -> None:
    """Raise a ValueError unless the entries of the table are probabilities that sum to one."""
    check_distribution(table.flatten(), "the joint table")
