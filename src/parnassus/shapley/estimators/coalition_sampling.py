"""Sampling of coalitions for Kernel SHAP: uniform sizes, in complementary pairs, without replacement (book sec. 17.4).

Kernel SHAP's regression gives a coalition of s out of M players the weight π(s). Its leverage is about 1 / C(M, s), so
every size is equally informative (Musco and Witter 2025). Sizes are therefore sampled uniformly; each coalition comes
with its complement, which cancels all even terms of the error; and no coalition is evaluated twice.
"""

from math import comb
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.shapley.games.cooperative_games import all_coalitions, coalition_sizes


class CoalitionSample(NamedTuple):
    """Coalitions other than the empty and the grand one, in complementary pairs, with inclusion probabilities.

    Complements are at equal distances from both ends. Several sets have the same sizes at the same positions.
    """

    coalitions: Bool[Tensor, "*sets count players"]
    inclusion_probability: Float[Tensor, " count"]


def exhaustive_sample(players: int) -> CoalitionSample:
    """All 2^M − 2 coalitions, in the order of a game's table."""
    inner = all_coalitions(players)[1:-1]
    return CoalitionSample(inner, torch.ones(len(inner), dtype=torch.float64))


def sample_coalitions(players: int, budget: int, *, generator: torch.Generator | None = None) -> CoalitionSample:
    """About `budget` distinct coalitions with uniform sizes, in complementary pairs; all if the budget suffices.

    A size with no more coalitions than its part of the budget is taken completely; the remainder goes to other sizes.
    """
    sample = sample_coalition_sets(1, players, budget, generator=generator)
    return CoalitionSample(sample.coalitions[0], sample.inclusion_probability)


def sample_coalition_sets(
    sets: int,
    players: int,
    budget: int,
    *,
    previous: CoalitionSample | None = None,
    generator: torch.Generator | None = None,
) -> CoalitionSample:
    """Independent sets of about `budget` coalitions each; those of `previous` come first and are extended.

    An extended set is distributed like one of the same size sampled at once: distinct coalitions, with the inclusion
    probabilities of the whole.
    """
    if players < 2:
        return CoalitionSample(torch.zeros(sets, 0, players, dtype=torch.bool), torch.zeros(0, dtype=torch.float64))
    if budget < 2:
        raise ValueError(f"budget must be at least 2 coalitions, one and its complement; got budget={budget}")
    smaller = range(1, players // 2 + 1)
    weights = [0.5 if 2 * size == players else 1.0 for size in smaller]  # in the middle both of a pair have this size
    available = [weight * comb(players, size) for weight, size in zip(weights, smaller, strict=True)]
    old = torch.zeros(sets, 0, players, dtype=torch.bool) if previous is None else previous.coalitions.chunk(2, -2)[0]
    old_sizes, parts = old[:1].sum(-1)[0], [old]
    probability = torch.zeros(players, dtype=torch.float64)
    for size, pairs, count in zip(smaller, available, allocate_budget(available, weights, budget / 2), strict=True):
        before = old[:, old_sizes == size]
        subsets = _sample_subsets(before, size, max(count, before.shape[1]), generator)
        parts.append(subsets[:, before.shape[1] :])
        probability[size] = subsets.shape[1] / pairs
    half = torch.cat(parts, 1)
    return _add_complements(half, probability[half[0].sum(-1)])


def allocate_budget(available: list[float], weights: list[float], budget: float) -> list[int]:
    """Numbers in proportion to `weights`, at most those available, with a sum of about `budget`."""
    allocated = dict.fromkeys(range(len(available)), 0.0)
    open_kinds = list(allocated)
    while open_kinds:
        unit = (budget - sum(allocated.values())) / sum(weights[kind] for kind in open_kinds)
        exhausted = [kind for kind in open_kinds if available[kind] <= unit * weights[kind]]
        for kind in exhausted or open_kinds:
            allocated[kind] = min(available[kind], unit * weights[kind])
        open_kinds = [kind for kind in open_kinds if kind not in exhausted] if exhausted else []
    return [max(1, round(count)) for count in allocated.values()]


def _add_complements(
    half: Bool[Tensor, "*sets pairs players"], probability: Float[Tensor, " pairs"]
) -> CoalitionSample:
    return CoalitionSample(torch.cat([half, ~half.flip(-2)], -2), torch.cat([probability, probability.flip(0)]))


def _sample_subsets(
    before: Bool[Tensor, "sets before players"], size: int, count: int, generator: torch.Generator | None
) -> Bool[Tensor, "sets count players"]:
    """`count` distinct subsets of this size in each set, `before` first; of complements only one."""
    sets, _, players = before.shape
    fixed = 2 * size == players  # player 0 is in: the complements are those without
    free, chosen = (players - 1, size - 1) if fixed else (players, size)
    enumerate_all = comb(free, chosen) <= 4 * count
    found = before[..., fixed:]
    while True:  # duplicates are rare
        if enumerate_all:
            order = _uniform(sets, comb(free, chosen), generator=generator).argsort(1)
            candidates = _all_subsets(free, chosen)[order]
        else:
            first = _uniform(sets, count, free, generator=generator).topk(chosen).indices
            candidates = torch.zeros(sets, count, free, dtype=torch.bool).scatter_(-1, first, 1)
        found, num_distinct = _move_duplicates_last(torch.cat([found, candidates], 1))
        if num_distinct >= count:
            found = found[:, :count]
            return torch.cat([torch.ones(sets, count, 1, dtype=torch.bool), found], -1) if fixed else found


def _move_duplicates_last(
    subsets: Bool[Tensor, "sets count players"],
) -> tuple[Bool[Tensor, "sets count players"], int]:
    """Each set with its duplicates at the end, and the smallest number of distinct subsets in a set."""
    mark = torch.randint(2**62, (subsets.shape[-1],), generator=torch.Generator().manual_seed(0))
    marks = (subsets * mark).sum(-1)  # hashes, integers that wrap around: two subsets collide with probability 2⁻⁶⁴
    order = marks.argsort(dim=1, stable=True)
    ordered = marks.gather(1, order)
    is_duplicate = torch.zeros_like(subsets[..., 0])
    is_duplicate.scatter_(1, order[:, 1:], ordered[:, 1:] == ordered[:, :-1])
    distinct_first = is_duplicate.long().argsort(dim=1, stable=True)
    return subsets.gather(1, distinct_first[..., None].expand_as(subsets)), int((~is_duplicate).sum(1).min())


def _uniform(*shape: int, generator: torch.Generator | None) -> Float[Tensor, "..."]:
    """Uniform values from the generator's device, on the CPU."""
    return torch.rand(*shape, generator=generator, device=generator.device if generator else "cpu").cpu()


def _all_subsets(players: int, size: int) -> Bool[Tensor, "count players"]:
    if players <= 16:
        return all_coalitions(players)[coalition_sizes(players) == size]
    chosen: Int[Tensor, "count size"] = torch.combinations(torch.arange(players), size)
    return torch.zeros(len(chosen), players, dtype=torch.bool).scatter_(1, chosen, 1)
