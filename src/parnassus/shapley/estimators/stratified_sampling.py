"""Stratified sampling of Shapley values by coalition size (Castro et al. 2017; book eq. 17.3).

    φ_i = (1/M) Σ_s E[v(S ∪ i) − v(S)],   S any s of the others, s = 0 … M − 1                       (book eq. 17.3)

Place the players in random order on a circle. The window of s + 1 successive players is its first s with one more, and
its last s with one more. So the 2M windows of s and of s + 1 players give two marginal contributions at size s for
every player, one per evaluated coalition.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.shapley.estimators.estimate import (
    ShapleyEstimate,
    empty_and_grand_worth,
    equal_split,
    small_sample_errors,
)
from parnassus.shapley.games.cooperative_games import CharacteristicFunction

Allocation: TypeAlias = Callable[[Float[Tensor, " sizes"]], Float[Tensor, " sizes"]]
"""Relative sample numbers of the sizes, from the standard deviation at each size."""

PILOT_FRACTION = 0.25
"""Fraction of the budget that is spent equally on all sizes, to estimate their variances."""


def neyman_allocation(deviation: Float[Tensor, " sizes"]) -> Float[Tensor, " sizes"]:
    """n_s ∝ σ_s, which minimises Σ_s σ_s² / n_s (Neyman 1934)."""
    return deviation if bool((deviation > 0).any()) else equal_allocation(deviation)


def equal_allocation(deviation: Float[Tensor, " sizes"]) -> Float[Tensor, " sizes"]:
    """Equal sample numbers: proportional allocation, since every size has weight 1/M."""
    return torch.ones_like(deviation)


def stratified_sampling(
    worth: CharacteristicFunction,
    players: int,
    budget: int,
    *,
    allocation: Allocation = neyman_allocation,
    generator: torch.Generator | None = None,
) -> ShapleyEstimate:
    """The stratified mean over sizes from about `budget` coalitions; sizes 0 and M − 1 are evaluated exactly.

    A sample is the contributions of all players at one size, around one circle. Each sample is centred over players and
    v(N)/M is added to the result, which makes it efficient; errors are those of the centred samples, summed over sizes:
    Var φ̂ = Σ_s Var_s / (n_s M²). As the n_s depend on the pilot samples, which are included, the bias is O(1/n); with
    `equal_allocation` it is 0. Where all sizes have equal variance the pilot costs a few per cent of accuracy.
    """
    ends = empty_and_grand_worth(worth, players)
    if players < 3:
        return _exact_for_few_players(worth, ends, players)
    total = _num_circles(players, budget)
    sizes = range(1, players - 1)
    seeds = torch.randint(2**62, (len(sizes),), generator=generator).tolist()
    pilot = torch.full((len(sizes),), max(2, int(PILOT_FRACTION * total / len(sizes))))
    samples = [
        contributions_around(worth, size, random_circles(players, range(count), seed))
        for size, count, seed in zip(sizes, pilot.tolist(), seeds, strict=True)
    ]
    variance = torch.stack([each.var(-2).mean() for each in samples])
    counts = allocate_samples(allocation(smooth_over_sizes(variance).sqrt().cpu()), pilot, total)
    for index, (size, count, seed) in enumerate(zip(sizes, counts.tolist(), seeds, strict=True)):
        if count > pilot[index]:
            more = random_circles(players, range(int(pilot[index]), count), seed)
            samples[index] = torch.cat([samples[index], contributions_around(worth, size, more)], -2)
    extreme = _extreme_contributions(worth, ends, players)
    values = (extreme + sum(each.mean(-2) for each in samples)) / players
    squares = torch.stack([each.var(-2) / each.shape[-2] for each in samples])
    rest = torch.stack([square.square() / (each.shape[-2] - 1) for square, each in zip(squares, samples, strict=True)])
    degrees_of_freedom = squares.sum(0).square() / rest.sum(0).clamp(min=1e-300)  # Welch-Satterthwaite
    errors = squares.sum(0).sqrt() / players
    return ShapleyEstimate(equal_split(ends, players).values + values, small_sample_errors(errors, degrees_of_freedom))


def smooth_over_sizes(variance: Float[Tensor, " sizes"]) -> Float[Tensor, " sizes"]:
    """Weighted means 1 : 2 : 1 with the neighbours; otherwise equal pilot samples would exclude a size permanently."""
    padded = torch.cat([variance[:1], variance, variance[-1:]])
    return (padded[:-2] + 2 * variance + padded[2:]) / 4


def allocate_samples(
    weights: Float[Tensor, " sizes"], minimum: Int[Tensor, " sizes"], total: int
) -> Int[Tensor, " sizes"]:
    """About `total` samples in proportion to `weights`, at least `minimum` of each size."""
    beyond = (total * weights / weights.sum() - minimum).clamp(min=0.0)
    rest = max(0, total - int(minimum.sum()))
    ends = (rest * beyond / beyond.sum().clamp(min=1e-30)).cumsum(0).round().long()  # rounding preserves the sum
    return minimum + ends.diff(prepend=ends.new_zeros(1))


def circular_windows(circle: Int[Tensor, "*circles players"], size: int) -> Bool[Tensor, "*circles players players"]:
    """Coalitions of `size` successive players, from each position of the circle."""
    players = circle.shape[-1]
    seats = torch.arange(players)
    inside = (seats - seats[:, None]) % players < size  # seats of the window from each seat on
    return inside[:, circle.argsort(-1)].movedim(0, -2)


def random_circles(players: int, which: range, seed: int) -> Int[Tensor, "count players"]:
    """Circles number `which` of the reproducible sequence of random circles with this seed."""
    generator = torch.Generator().manual_seed(seed)
    return torch.stack([torch.randperm(players, generator=generator) for _ in range(which.stop)])[which.start :]


def contributions_around(
    worth: CharacteristicFunction, size: int, circle: Int[Tensor, "count players"]
) -> Float[Tensor, "*games count players"]:
    """Marginal contributions of all players at `size` around each circle, centred over players."""
    coalitions = torch.stack([circular_windows(circle, size), circular_windows(circle, size + 1)])
    small, large = worth(coalitions.flatten(0, 2)).unflatten(-1, (2, *circle.shape)).unbind(-3)
    last_joins, first_joins = large - small, large - small.roll(-1, -1)  # by the window's first seat
    by_seat = (last_joins.roll(size, -1) + first_joins) / 2
    gains: Tensor = by_seat.gather(-1, circle.argsort(-1).to(by_seat.device).expand(by_seat.shape))
    return gains - gains.mean(-1, keepdim=True)


def _extreme_contributions(
    worth: CharacteristicFunction, ends: Tensor, players: int
) -> Float[Tensor, "*games players"]:
    """Contributions to the empty coalition plus those to all others, centred over players."""
    alone = torch.eye(players, dtype=torch.bool)
    single, without = worth(torch.cat([alone, ~alone])).unflatten(-1, (2, players)).unbind(-2)
    gains: Tensor = single - ends[..., :1] + ends[..., 1:] - without
    return gains - gains.mean(-1, keepdim=True)


def _exact_for_few_players(worth: CharacteristicFunction, ends: Tensor, players: int) -> ShapleyEstimate:
    """Exact values of one or two players, whose only sizes are 0 and M − 1."""
    equal = equal_split(ends, players)
    return (
        equal
        if players == 1
        else ShapleyEstimate(equal.values + _extreme_contributions(worth, ends, 2) / 2, equal.errors)
    )


def _num_circles(players: int, budget: int) -> int:
    """Circles of all sizes together, 2M coalitions each, after 2M coalitions of sizes 1 and M − 1."""
    needed = 2 * players * (1 + 2 * (players - 2))
    if budget < needed:
        raise ValueError(
            f"a standard error needs two circles of each size, here {needed} coalitions of {players} players; "
            f"got budget={budget}"
        )
    return budget // (2 * players) - 1
