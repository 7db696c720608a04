"""Permutation sampling of Shapley values, plain, antithetic or balanced (book eq. 17.4; Castro et al. 2009).

A permutation of M players evaluates M − 1 coalitions in addition to the empty and the grand one. The marginal
contributions along it sum to v(N) − v(∅), so every mean over permutations is efficient.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.shapley.estimators.estimate import (
    ShapleyEstimate,
    empty_and_grand_worth,
    equal_split,
    small_sample_errors,
)
from parnassus.shapley.games.cooperative_games import CharacteristicFunction


def random_permutations(
    players: int, count: int, generator: torch.Generator | None = None
) -> Int[Tensor, "count players"]:
    """Independent permutations; with the same seed a longer list begins with the shorter one."""
    return torch.stack([torch.randperm(players, generator=generator) for _ in range(count)])


def balanced_permutations(
    players: int, count: int, generator: torch.Generator | None = None
) -> Int[Tensor, "count players"]:
    """Rows of random Latin squares: in each M successive permutations every player has every position once.

    Row k of a square is π((k + τ(position)) mod M) with random π and τ, so that each row alone is uniform.
    """
    shifts = torch.arange(players)[:, None]
    squares = []
    for _ in range(-(-count // players)):
        pi, tau = (torch.randperm(players, generator=generator) for _ in range(2))
        squares.append(pi[(shifts + tau) % players])
    return torch.cat(squares)[:count]


def contributions_by_permutation(
    worth: CharacteristicFunction, ends: Float[Tensor, "*games 2"], permutations: Int[Tensor, "count players"]
) -> Float[Tensor, "*games count players"]:
    """Marginal contributions v(pre_i ∪ i) − v(pre_i) in each permutation, by player (book sec. 17.2)."""
    count, players = permutations.shape
    positions = permutations.argsort(-1)
    predecessors = positions[:, None] < torch.arange(1, players)[:, None]  # the first 1, …, M − 1 players
    inner = worth(predecessors.flatten(0, 1)).unflatten(-1, (count, players - 1))
    empty, grand = ends[..., None, :].expand(*inner.shape[:-1], 2).split(1, -1)
    gains = torch.cat([empty, inner, grand], -1).diff(dim=-1)
    return gains.gather(-1, positions.to(gains.device).expand(gains.shape))


def permutation_sampling(
    worth: CharacteristicFunction,
    players: int,
    budget: int,
    *,
    antithetic: bool = False,
    generator: torch.Generator | None = None,
) -> ShapleyEstimate:
    """Mean marginal contributions over random permutations, unbiased, from about `budget` coalitions (book eq. 17.4).

    `antithetic` pairs each permutation with its reverse. Interactions of even order are then split without error; there
    are half as many independent samples, so the variance due to interactions of odd order doubles.
    """
    ends = empty_and_grand_worth(worth, players)
    if players < 2:
        return equal_split(ends, players)
    permutations = random_permutations(players, _num_permutations(players, budget, antithetic=antithetic), generator)
    return _mean_of_independent(_sample_contributions(worth, ends, permutations, antithetic=antithetic))


def balanced_permutation_sampling(
    worth: CharacteristicFunction,
    players: int,
    budget: int,
    *,
    antithetic: bool = False,
    generator: torch.Generator | None = None,
) -> ShapleyEstimate:
    """Permutation sampling with every player at every position equally often: removes the variance between positions.

    n = b M + r permutations contain b complete Latin squares. With σ² the mean variance at a position and τ² the
    variance of the positions' means

        n² Var φ̂ = n σ² + r (M − r)/(M − 1) τ²

    where rows of a square are treated as independent given their positions. With fewer than two squares all
    permutations are treated as independent, which is conservative.
    """
    ends = empty_and_grand_worth(worth, players)
    if players < 2:
        return equal_split(ends, players)
    permutations = balanced_permutations(players, _num_permutations(players, budget, antithetic=antithetic), generator)
    gains = _sample_contributions(worth, ends, permutations, antithetic=antithetic)
    count = len(permutations)
    squares, rest = divmod(count, players)
    if squares < 2:
        return _mean_of_independent(gains)
    positions = permutations.argsort(-1)[: squares * players].to(gains.device)
    in_squares = gains[..., : squares * players, :].unflatten(-2, (squares, players))
    by_position = in_squares.gather(-2, positions.unflatten(0, (squares, players)).argsort(-2).expand(in_squares.shape))
    within = by_position.var(-3).mean(-2)
    between = (by_position.mean(-3).var(-2) * (players - 1) / players - within / squares).clamp(min=0.0)
    variance = count * within + rest * (players - rest) / (players - 1) * between
    return ShapleyEstimate(gains.mean(-2), small_sample_errors(variance.sqrt() / count, players * (squares - 1)))


def _sample_contributions(
    worth: CharacteristicFunction, ends: Tensor, permutations: Tensor, *, antithetic: bool
) -> Tensor:
    """Contributions by sample; an antithetic pair is one sample, since its halves are dependent."""
    gains = contributions_by_permutation(worth, ends, permutations)
    if not antithetic:
        return gains
    return (gains + contributions_by_permutation(worth, ends, permutations.flip(-1))) / 2


def _mean_of_independent(gains: Tensor) -> ShapleyEstimate:
    """Mean contributions over samples, with the standard errors of independent samples."""
    count = gains.shape[-2]
    return ShapleyEstimate(gains.mean(-2), small_sample_errors(gains.std(-2) / count**0.5, count - 1))


def _num_permutations(players: int, budget: int, *, antithetic: bool) -> int:
    """Permutations, or antithetic pairs, that evaluate at most `budget` coalitions."""
    cost = (players - 1) * (2 if antithetic else 1)
    if budget < 2 * cost:
        raise ValueError(
            f"a standard error needs two {'antithetic pairs' if antithetic else 'permutations'}, here {2 * cost} "
            f"coalitions of {players} players; got budget={budget}"
        )
    return budget // cost
