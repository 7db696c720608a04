"""Which coalitions to ask: all of them, or a few that tell the most (book sec. 17.4).

The regression of Kernel SHAP weighs a coalition of s out of M players by π(s). Its leverage, how much it can move the
answer, is 1 / C(M, s): every size tells as much as any other (Musco and Witter 2025). So sizes are drawn alike, each
coalition comes with its complement, which cancels every even error, and none is asked twice.
"""

from math import comb, inf
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.shapley.game import members, sizes


class Asked(NamedTuple):
    """Coalitions that are neither empty nor full, in pairs of complements, with their chances of having been drawn."""

    coalitions: Bool[Tensor, "count players"]
    chance: Float[Tensor, " count"]


def shapley_kernel(players: int) -> Float[Tensor, " sizes"]:
    """π(s) = (M − 1) / (C(M, s) s (M − s)) for s = 0 … M; infinite for nobody and for everybody (book eq. 17.10)."""
    if players < 1:
        raise ValueError(f"there must be players; got players={players}")
    inner = [(players - 1) / (comb(players, size) * size * (players - size)) for size in range(1, players)]
    return torch.tensor([inf, *inner, inf], dtype=torch.float64)


def every_coalition(players: int) -> Asked:
    """All 2^M − 2 of them, the first half the complements of the second in reverse."""
    inner = members(players)[1:-1]
    return Asked(inner, torch.ones(len(inner), dtype=torch.float64))


def drawn_coalitions(players: int, budget: int, *, generator: torch.Generator | None = None) -> Asked:
    """About `budget` different coalitions, sizes alike, each with its complement; all of them if the budget suffices.

    Small and large coalitions are few: where there are no more of a size than its share of the budget, all are asked
    for certain, and the rest of its share goes to other sizes.
    """
    if players < 2:
        return Asked(torch.zeros(0, players, dtype=torch.bool), torch.zeros(0, dtype=torch.float64))
    if budget < 2:
        raise ValueError(f"a budget of at least 2 coalitions is needed, one and its complement; got budget={budget}")
    smaller = range(1, players // 2 + 1)
    middle = [
        0.5 if 2 * size == players else 1.0 for size in smaller
    ]  # of this size both are: a coalition, its complement
    there = [share * comb(players, size) for share, size in zip(middle, smaller, strict=True)]
    halves, chances = [], []
    for size, pairs, count in zip(smaller, there, shares(there, middle, budget / 2), strict=True):
        found = _subsets(players, size, count, generator)
        halves.append(found)
        chances.append(torch.full((len(found),), len(found) / pairs, dtype=torch.float64))
    half, chance = torch.cat(halves), torch.cat(chances)
    return Asked(torch.cat([half, ~half]), torch.cat([chance, chance]))


def shares(there: list[float], wanted: list[float], budget: float) -> list[int]:
    """How many of each kind to take: as `wanted` in proportion, no more than there are, together about `budget`."""
    taken = dict.fromkeys(range(len(there)), 0.0)
    open_kinds = list(taken)
    while open_kinds:
        unit = (budget - sum(taken.values())) / sum(wanted[kind] for kind in open_kinds)
        scarce = [kind for kind in open_kinds if there[kind] <= unit * wanted[kind]]
        for kind in scarce or open_kinds:
            taken[kind] = min(there[kind], unit * wanted[kind])
        open_kinds = [kind for kind in open_kinds if kind not in scarce] if scarce else []
    return [max(1, round(count)) for count in taken.values()]


def _subsets(players: int, size: int, count: int, generator: torch.Generator | None) -> Bool[Tensor, "count players"]:
    """`count` different subsets of this size, one out of each pair of complements where both have it."""
    fixed = 2 * size == players  # player 0 is in: the complements are those without
    free, chosen = (players - 1, size - 1) if fixed else (players, size)
    if comb(free, chosen) <= 4 * count:  # few: list them all, and take some
        found = _all_subsets(free, chosen)
        found = found[torch.randperm(len(found), generator=generator)[:count]]
    else:
        found = torch.zeros(0, free, dtype=torch.bool)
        while len(found) < count:  # drawn twice is rare
            ranks = torch.rand(count, free, generator=generator).argsort(1).argsort(1)
            found = torch.unique(torch.cat([found, ranks < chosen]), dim=0)
        found = found[torch.randperm(len(found), generator=generator)[:count]]
    return torch.cat([torch.ones(len(found), 1, dtype=torch.bool), found], 1) if fixed else found


def _all_subsets(players: int, size: int) -> Bool[Tensor, "count players"]:
    if players <= 16:
        return members(players)[sizes(players) == size]
    chosen = torch.combinations(torch.arange(players), size)
    return torch.zeros(len(chosen), players, dtype=torch.bool).scatter_(1, chosen, 1)
