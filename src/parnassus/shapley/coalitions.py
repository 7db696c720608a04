"""Which coalitions to ask: all of them, or a few that tell the most (book sec. 17.4).

The regression of Kernel SHAP weighs a coalition of s out of M players by π(s). Its leverage, how much it can move the
answer, is 1 / C(M, s): every size tells as much as any other (Musco and Witter 2025). So sizes are drawn alike, each
coalition comes with its complement, which cancels every even error, and none is asked twice.
"""

from math import comb, inf
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.shapley.game import members, sizes


class Asked(NamedTuple):
    """Coalitions that are neither empty nor full, in pairs of complements, with their chances of having been drawn.

    Complements stand at equal distances from both ends. Several sets have the same sizes at the same places.
    """

    coalitions: Bool[Tensor, "*sets count players"]
    chance: Float[Tensor, " count"]


def shapley_kernel(players: int) -> Float[Tensor, " sizes"]:
    """π(s) = (M − 1) / (C(M, s) s (M − s)) for s = 0 … M; infinite for nobody and for everybody (book eq. 17.10)."""
    if players < 1:
        raise ValueError(f"there must be players; got players={players}")
    inner = [(players - 1) / (comb(players, size) * size * (players - size)) for size in range(1, players)]
    return torch.tensor([inf, *inner, inf], dtype=torch.float64)


def every_coalition(players: int) -> Asked:
    """All 2^M − 2 of them, in the order of a game's table."""
    inner = members(players)[1:-1]
    return Asked(inner, torch.ones(len(inner), dtype=torch.float64))


def drawn_coalitions(players: int, budget: int, *, generator: torch.Generator | None = None) -> Asked:
    """About `budget` different coalitions, sizes alike, each with its complement; all of them if the budget suffices.

    Small and large coalitions are few: where there are no more of a size than its share of the budget, all are asked
    for certain, and the rest of its share goes to other sizes.
    """
    found = drawn_sets(1, players, budget, generator=generator)
    return Asked(found.coalitions[0], found.chance)


def drawn_sets(
    sets: int, players: int, budget: int, *, kept: Asked | None = None, generator: torch.Generator | None = None
) -> Asked:
    """Several sets of about `budget` coalitions, each drawn by itself; `kept` ones come first and more are added.

    With what was kept they are as if drawn at once: none comes twice, and the chances are those of the whole.
    """
    if players < 2:
        return Asked(torch.zeros(sets, 0, players, dtype=torch.bool), torch.zeros(0, dtype=torch.float64))
    if budget < 2:
        raise ValueError(f"a budget of at least 2 coalitions is needed, one and its complement; got budget={budget}")
    smaller = range(1, players // 2 + 1)
    middle = [0.5 if 2 * size == players else 1.0 for size in smaller]  # there both of a pair are of this size
    there = [share * comb(players, size) for share, size in zip(middle, smaller, strict=True)]
    old = torch.zeros(sets, 0, players, dtype=torch.bool) if kept is None else kept.coalitions.chunk(2, -2)[0]
    had, new, chance_of = old[:1].sum(-1)[0], [old], torch.zeros(players, dtype=torch.float64)
    for size, pairs, count in zip(smaller, there, shares(there, middle, budget / 2), strict=True):
        before = old[:, had == size]
        found = _subsets(before, size, max(count, before.shape[1]), generator)
        new.append(found[:, before.shape[1] :])
        chance_of[size] = found.shape[1] / pairs
    half = torch.cat(new, 1)
    return _with_complements(half, chance_of[half[0].sum(-1)])


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


def _with_complements(half: Bool[Tensor, "*sets pairs players"], chance: Float[Tensor, " pairs"]) -> Asked:
    return Asked(torch.cat([half, ~half.flip(-2)], -2), torch.cat([chance, chance.flip(0)]))


def _subsets(
    before: Bool[Tensor, "sets before players"], size: int, count: int, generator: torch.Generator | None
) -> Bool[Tensor, "sets count players"]:
    """`count` different subsets of this size in each set, those `before` first; of a pair of complements only one."""
    sets, _, players = before.shape
    fixed = 2 * size == players  # player 0 is in: the complements are those without
    free, chosen = (players - 1, size - 1) if fixed else (players, size)
    few = comb(free, chosen) <= 4 * count  # list them all, and take some
    found = before[..., fixed:]
    while True:  # drawn twice is rare
        if few:
            order = _random(sets, comb(free, chosen), generator=generator).argsort(1)
            drawn = _all_subsets(free, chosen)[order]
        else:
            first = _random(sets, count, free, generator=generator).topk(chosen).indices
            drawn = torch.zeros(sets, count, free, dtype=torch.bool).scatter_(-1, first, 1)
        found, different = _first_of_each(torch.cat([found, drawn], 1))
        if different >= count:
            found = found[:, :count]
            return torch.cat([torch.ones(sets, count, 1, dtype=torch.bool), found], -1) if fixed else found


def _first_of_each(subsets: Bool[Tensor, "sets count players"]) -> tuple[Bool[Tensor, "sets count players"], int]:
    """The same with what comes again put last, and how many different ones every set has at least."""
    mark = torch.randint(2**62, (subsets.shape[-1],), generator=torch.Generator().manual_seed(0))
    marks = (subsets * mark).sum(-1)  # whole numbers that wrap around: equal only for equal subsets, one in 2⁶⁴ else
    order = marks.argsort(dim=1, stable=True)
    ordered = marks.gather(1, order)
    again = torch.zeros_like(subsets[..., 0])
    again.scatter_(1, order[:, 1:], ordered[:, 1:] == ordered[:, :-1])
    kept = again.long().argsort(dim=1, stable=True)
    return subsets.gather(1, kept[..., None].expand_as(subsets)), int((~again).sum(1).min())


def _random(*shape: int, generator: torch.Generator | None) -> Float[Tensor, "..."]:
    """Uniform numbers where the generator is, brought here."""
    return torch.rand(*shape, generator=generator, device=generator.device if generator else "cpu").cpu()


def _all_subsets(players: int, size: int) -> Bool[Tensor, "count players"]:
    if players <= 16:
        return members(players)[sizes(players) == size]
    chosen: Int[Tensor, "count size"] = torch.combinations(torch.arange(players), size)
    return torch.zeros(len(chosen), players, dtype=torch.bool).scatter_(1, chosen, 1)
