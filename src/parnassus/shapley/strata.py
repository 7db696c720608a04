"""Shapley values size by size: sample most where what players add varies most (Castro et al. 2017; book eq. 17.3).

    φ_i = (1/M) Σ_s E[v(S ∪ i) − v(S)],   S any s of the others, s = 0 … M − 1                       (book eq. 17.3)

Players on a circle in random order: s + 1 in a row are the first s with one more, and the last s with one more. So the
2M windows of s and of s + 1 players tell of every player twice what joining s others adds, a coalition for each answer.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.shapley.game import Worth
from parnassus.shapley.orders import ends_of, equal_shares
from parnassus.shapley.values import Estimate, widened

Allocation: TypeAlias = Callable[[Float[Tensor, " sizes"]], Float[Tensor, " sizes"]]
"""Shares of the budget, from the standard deviation at each size."""

PILOT = 0.25
"""The share of the budget that is spent on all sizes alike, to learn where it varies most."""


def neyman(deviation: Float[Tensor, " sizes"]) -> Float[Tensor, " sizes"]:
    """n_s ∝ σ_s: no other allocation makes Σ_s σ_s² / n_s smaller (Neyman 1934)."""
    return deviation if bool((deviation > 0).any()) else evenly(deviation)


def evenly(deviation: Float[Tensor, " sizes"]) -> Float[Tensor, " sizes"]:
    """The same for all sizes: in proportion to what they weigh, for all sizes weigh 1/M."""
    return torch.ones_like(deviation)


def by_sizes(
    worth: Worth,
    players: int,
    budget: int,
    *,
    allocate: Allocation = neyman,
    generator: torch.Generator | None = None,
) -> Estimate:
    """The stratified mean from about `budget` coalitions; sizes 0 and M − 1 have one coalition each and are certain.

    A sample is what all players add at one size, seen around one circle. Taking from each sample its mean over players
    and giving everybody v(all)/M instead makes the parts sum up exactly; the errors are those of what is left, summed
    over sizes: Var φ̂ = Σ_s Var_s / (n_s M²). Since the numbers n_s follow from the samples of a pilot, which count too,
    the mean is unbiased up to O(1/n) only; with `evenly` it is without bias. Where what players add varies alike at all
    sizes, learning that costs a few per cent.
    """
    ends = ends_of(worth, players)
    if players < 3:
        return _certain(worth, ends, players)
    total = _circles_affordable(players, budget)
    sizes = range(1, players - 1)
    seeds = torch.randint(2**62, (len(sizes),), generator=generator).tolist()
    pilot = torch.full((len(sizes),), max(2, int(PILOT * total / len(sizes))))
    samples = [
        added_around(worth, size, circles(players, range(count), seed))
        for size, count, seed in zip(sizes, pilot.tolist(), seeds, strict=True)
    ]
    variance = torch.stack([each.var(-2).mean() for each in samples])
    counts = spread_out(allocate(smoothed(variance).sqrt().cpu()), pilot, total)
    for index, (size, count, seed) in enumerate(zip(sizes, counts.tolist(), seeds, strict=True)):
        if count > pilot[index]:
            more = circles(players, range(int(pilot[index]), count), seed)
            samples[index] = torch.cat([samples[index], added_around(worth, size, more)], -2)
    certain = _first_and_last(worth, ends, players)
    values = (certain + sum(each.mean(-2) for each in samples)) / players
    squares = torch.stack([each.var(-2) / each.shape[-2] for each in samples])
    rest = torch.stack([square.square() / (each.shape[-2] - 1) for square, each in zip(squares, samples, strict=True)])
    freedom = squares.sum(0).square() / rest.sum(0).clamp(min=1e-300)  # Welch and Satterthwaite's
    errors = squares.sum(0).sqrt() / players
    return Estimate(equal_shares(ends, players).values + values, widened(errors, freedom))


def smoothed(variance: Float[Tensor, " sizes"]) -> Float[Tensor, " sizes"]:
    """Of each size and its neighbours, 1 : 2 : 1; a pilot of two that happen to agree would starve a size for good."""
    padded = torch.cat([variance[:1], variance, variance[-1:]])
    return (padded[:-2] + 2 * variance + padded[2:]) / 4


def spread_out(share: Float[Tensor, " sizes"], least: Int[Tensor, " sizes"], total: int) -> Int[Tensor, " sizes"]:
    """About `total` samples in these shares, of none fewer than `least`."""
    beyond = (total * share / share.sum() - least).clamp(min=0.0)
    rest = max(0, total - int(least.sum()))
    ends = (rest * beyond / beyond.sum().clamp(min=1e-30)).cumsum(0).round().long()  # rounded so that none is lost
    return least + ends.diff(prepend=ends.new_zeros(1))


def windows(circle: Int[Tensor, "*circles players"], size: int) -> Bool[Tensor, "*circles players players"]:
    """`size` players in a row from each place of the circle on, as coalitions."""
    players = circle.shape[-1]
    seats = torch.arange(players)
    taken = (seats - seats[:, None]) % players < size  # seats of the window from each seat on
    return taken[:, circle.argsort(-1)].movedim(0, -2)


def circles(players: int, which: range, seed: int) -> Int[Tensor, "count players"]:
    """Some of the random circles that this seed gives one after the other, always the same."""
    source = torch.Generator().manual_seed(seed)
    return torch.stack([torch.randperm(players, generator=source) for _ in range(which.stop)])[which.start :]


def added_around(
    worth: Worth, size: int, circle: Int[Tensor, "count players"]
) -> Float[Tensor, "*games count players"]:
    """What each player adds to `size` others around each circle, less the mean over players."""
    asked = torch.stack([windows(circle, size), windows(circle, size + 1)])
    small, large = worth(asked.flatten(0, 2)).unflatten(-1, (2, *circle.shape)).unbind(-3)
    last_comes, first_comes = large - small, large - small.roll(-1, -1)  # by the window's first seat
    by_seat = (last_comes.roll(size, -1) + first_comes) / 2
    added: Tensor = by_seat.gather(-1, circle.argsort(-1).to(by_seat.device).expand(by_seat.shape))
    return added - added.mean(-1, keepdim=True)


def _first_and_last(worth: Worth, ends: Tensor, players: int) -> Float[Tensor, "*games players"]:
    """What each adds to nobody and, last of all, to the others, less the mean over players."""
    alone = torch.eye(players, dtype=torch.bool)
    single, without = worth(torch.cat([alone, ~alone])).unflatten(-1, (2, players)).unbind(-2)
    added: Tensor = single - ends[..., :1] + ends[..., 1:] - without
    return added - added.mean(-1, keepdim=True)


def _certain(worth: Worth, ends: Tensor, players: int) -> Estimate:
    """One player gets all, and of two each both comes first and last: nothing is left to chance."""
    equal = equal_shares(ends, players)
    return equal if players == 1 else Estimate(equal.values + _first_and_last(worth, ends, 2) / 2, equal.errors)


def _circles_affordable(players: int, budget: int) -> int:
    """Circles of all sizes together: 2M coalitions each, beside the 2M of one player and of all but one."""
    needed = 2 * players * (1 + 2 * (players - 2))
    if budget < needed:
        raise ValueError(
            f"an error needs two circles of each size, here {needed} coalitions of {players} players; "
            f"got budget={budget}"
        )
    return budget // (2 * players) - 1
