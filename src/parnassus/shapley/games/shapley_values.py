"""Shapley values, Banzhaf values and interaction indices of tabulated games (book sec. 17.2)."""

from collections.abc import Callable, Iterator
from itertools import permutations
from math import comb, factorial
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor

from parnassus.shapley.games.cooperative_games import (
    all_coalitions,
    coalition_sizes,
    harsanyi_dividends,
    num_players,
    sum_over_members,
)

MAX_ENUMERATED_PLAYERS = 8
"""Maximum number of players whose M! permutations are enumerated: 40,320."""


def subset_weights(players: int) -> Float[Tensor, " sizes"]:
    """|S|! (M − |S| − 1)! / M! = 1 / (M C(M − 1, |S|)) for |S| = 0 … M − 1 (book eqs. 17.3, 17.8)."""
    return torch.tensor([1 / (players * comb(players - 1, size)) for size in range(players)], dtype=torch.float64)


def as_floating(worth: Num[Tensor, "*games coalitions"]) -> Float[Tensor, "*games coalitions"]:
    """Worths as floating-point values; weights cast to integers would all be 0."""
    return worth if worth.is_floating_point() else worth.double()


def shapley_values(worth: Num[Tensor, "*games coalitions"]) -> Float[Tensor, "*games players"]:
    """φ_i = (1/M) Σ_{S∌i} [v(S ∪ i) − v(S)] / C(M − 1, |S|) (book eq. 17.3).

    With w(s) the weight of a coalition of s players and w(−1) = w(M) = 0 this equals
    Σ_{S∋i} [w(|S| − 1) + w(|S|)] v(S) − Σ_S w(|S|) v(S), which reads each worth twice instead of M times.
    """
    worth = as_floating(worth)
    players = num_players(worth)
    if players == 0:
        return worth[..., :0]
    padded = torch.cat([torch.zeros(1), subset_weights(players), torch.zeros(1)]).to(worth)
    size = coalition_sizes(players).to(worth.device)
    with_player, without_player = padded[size], padded[size + 1]
    return sum_over_members((with_player + without_player) * worth) - (worth @ without_player)[..., None]


def banzhaf_values(worth: Num[Tensor, "*games coalitions"]) -> Float[Tensor, "*games players"]:
    """β_i = 2^{1−M} Σ_{S∌i} [v(S ∪ i) − v(S)]: equal weights for all coalitions, not efficient (Banzhaf 1965)."""
    worth = as_floating(worth)
    weight = 0.5 ** (num_players(worth) - 1)
    return weight * (2 * sum_over_members(worth) - worth.sum(-1, keepdim=True))


def interaction_indices(worth: Num[Tensor, "*games coalitions"]) -> Float[Tensor, "*games players players"]:
    """Shapley interaction indices I_ij = Σ_{T⊇{i,j}} m(T) / (|T| − 1) (Grabisch and Roubens 1999).

    m(T) are the Harsanyi dividends. The diagonal holds the Shapley values φ_i = Σ_{T∋i} m(T) / |T|.
    """
    worth = as_floating(worth)
    players = num_players(worth)
    m, size = harsanyi_dividends(worth), coalition_sizes(players).to(worth)
    is_in = all_coalitions(players).to(worth)
    pairs = torch.einsum("...s,si,sj->...ij", m / (size - 1).clamp(min=1), is_in, is_in)
    values = sum_over_members(m / size.clamp(min=1))
    return pairs - torch.diag_embed(pairs.diagonal(dim1=-2, dim2=-1)) + torch.diag_embed(values)


def marginal_contributions(
    worth: Float[Tensor, " coalitions"], permutation: Int[Tensor, "*permutations players"]
) -> Float[Tensor, "*permutations players"]:
    """v(pre_i ∪ i) − v(pre_i) for the players pre_i before i in each permutation, by player (book sec. 17.2)."""
    predecessors = torch.zeros_like(permutation)
    predecessors[..., 1:] = (2**permutation).cumsum(-1)[..., :-1]  # as an index of a coalition
    gains = worth[predecessors + 2**permutation] - worth[predecessors]
    return torch.empty_like(gains).scatter_(-1, permutation, gains)


class PermutationTable(NamedTuple):
    """All permutations, the marginal contribution of each player in each, and their means: the Shapley values."""

    permutations: Int[Tensor, "permutations players"]
    contributions: Float[Tensor, "permutations players"]
    values: Float[Tensor, " players"]


def permutation_table(worth: Float[Tensor, " coalitions"]) -> PermutationTable:
    """φ_i = E[v(pre_i ∪ i) − v(pre_i)] over all M! permutations: the table of the book's example (book eq. 17.4)."""
    players = num_players(worth)
    if players > MAX_ENUMERATED_PLAYERS:
        raise ValueError(
            f"at most {MAX_ENUMERATED_PLAYERS} players can be enumerated, {players} have {factorial(players):,} "
            "permutations; use shapley_values or permutation_sampling"
        )
    table = torch.tensor(list(permutations(range(players))), dtype=torch.long).view(-1, players)
    contributions = marginal_contributions(worth, table)
    return PermutationTable(table, contributions, contributions.mean(0))


def axiom_violations(
    value: Callable[[Float[Tensor, " coalitions"]], Float[Tensor, " players"]],
    worth: Float[Tensor, " coalitions"],
    other: Float[Tensor, " coalitions"],
) -> Iterator[tuple[str, float]]:
    """The violation of each of Shapley's axioms by `value` on two games (book sec. 17.2).

    Efficiency: values sum to v(N). Symmetry: players with equal contributions have equal values. Dummy: a player who
    contributes nothing has value 0. Additivity: the value of a sum of games is the sum of the values.
    """
    players = num_players(worth)
    yield "efficiency", float((value(worth).sum() - worth[-1]).abs())
    swapped = swap_players(worth, 0, players - 1)
    yield "symmetry", float((value(worth + swapped)[0] - value(worth + swapped)[-1]).abs())
    yield "dummy", float(value(nullify_player(worth, 0))[0].abs())
    yield "additivity", float((value(worth + other) - value(worth) - value(other)).abs().max())


def swap_players(worth: Float[Tensor, " coalitions"], first: int, second: int) -> Float[Tensor, " coalitions"]:
    """The game with two players exchanged."""
    order = list(range(num_players(worth)))
    order[first], order[second] = order[second], order[first]
    return worth[(all_coalitions(len(order)) * 2 ** torch.tensor(order)).sum(-1)]


def nullify_player(worth: Float[Tensor, " coalitions"], player: int) -> Float[Tensor, " coalitions"]:
    """The game with `player` as a dummy, who contributes nothing to any coalition."""
    return worth[torch.arange(len(worth)) & ~(1 << player)]
