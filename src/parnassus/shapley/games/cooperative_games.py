"""Cooperative games as tables: the worth v(S) of every coalition S of M players (book sec. 17.1).

Coalition S has index Σ_{i∈S} 2^i: the empty coalition is 0, the grand coalition 2^M − 1. A table holds the worths on
its last axis; leading axes are several games.
"""

from collections.abc import Callable, Iterable, Mapping
from math import log2
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

CharacteristicFunction: TypeAlias = Callable[[Bool[Tensor, "count players"]], Float[Tensor, "*games count"]]
"""v of many coalitions at once, for one game or for several games on the same coalitions."""

MAX_PLAYERS = 24
"""Maximum number of players of a tabulated game: sixteen million coalitions."""


def num_players(worth: Float[Tensor, "*games coalitions"]) -> int:
    """M, from 2^M worths."""
    count = worth.shape[-1]
    if count < 1 or count & (count - 1):
        raise ValueError(f"a game of M players must have 2^M worths, one per coalition; got {count}")
    return int(log2(count))


def all_coalitions(players: int) -> Bool[Tensor, "coalitions players"]:
    """Membership matrix of all 2^M coalitions, in the order of a table."""
    if not 0 <= players <= MAX_PLAYERS:
        raise ValueError(f"a tabulated game must have 0 to {MAX_PLAYERS} players; got players={players}")
    return (torch.arange(2**players)[:, None] >> torch.arange(players)) & 1 == 1


def is_all_coalitions(coalitions: Bool[Tensor, "count players"]) -> bool:
    """Whether these are all 2^M coalitions in the order of a table."""
    count, players = coalitions.shape
    fits = players <= MAX_PLAYERS and count == 2**players
    return fits and torch.equal(coalitions, all_coalitions(players).to(coalitions.device))


def coalition_sizes(players: int) -> Int[Tensor, " coalitions"]:
    """|S| of every coalition, in the order of a table."""
    size = torch.zeros(1, dtype=torch.long)
    for _ in range(players):  # coalitions with the next player follow those without
        size = torch.cat([size, size + 1])
    return size


def game_table(players: int, worth: Callable[[frozenset[int]], float]) -> Float[Tensor, " coalitions"]:
    """The table of a game whose worth is a function of the set of players 0 … M − 1.

    v(∅) must be 0; the text omits the ∅ (book sec. 17.1).
    """
    table = [worth(frozenset(row.nonzero()[:, 0].tolist())) for row in all_coalitions(players)]
    if table[0] != 0:
        raise ValueError(f"the empty coalition must be worth 0; got {table[0]}")
    return torch.tensor(table, dtype=torch.float64)


def game_from_worths(worths: Mapping[tuple[int, ...], float], players: int) -> Float[Tensor, " coalitions"]:
    """The table of a game from listed worths, {(0,): 100, (0, 1): 270, …}; unlisted coalitions are worth 0."""
    by_coalition = {frozenset(coalition): worth for coalition, worth in worths.items()}
    unknown = sorted({player for coalition in by_coalition for player in coalition} - set(range(players)))
    if unknown:
        raise ValueError(f"players must be 0 to {players - 1}; got {unknown}")
    return game_table(players, lambda coalition: by_coalition.get(coalition, 0.0))


def characteristic_function(worth: Float[Tensor, "*games coalitions"]) -> CharacteristicFunction:
    """A tabulated game as a function of coalitions."""
    powers = 2 ** torch.arange(num_players(worth))
    return lambda coalitions: worth[..., (coalitions.long() @ powers).to(worth.device)]


def unanimity_game(players: int, required: Iterable[int]) -> Float[Tensor, " coalitions"]:
    """u_T(S) = 1 if T ⊆ S, else 0, with T = `required`; these games are a basis of all games (book sec. 17.2)."""
    carrier = frozenset(required)
    if not carrier or not carrier <= set(range(players)):
        raise ValueError(f"required must be a non-empty subset of players 0 to {players - 1}; got {sorted(carrier)}")
    return game_table(players, lambda coalition: float(carrier <= coalition))


def harsanyi_dividends(worth: Float[Tensor, "*games coalitions"]) -> Float[Tensor, "*games coalitions"]:
    """m(T) = Σ_{S⊆T} (−1)^{|T|−|S|} v(S), so that v(S) = Σ_{T⊆S} m(T) (Harsanyi 1963).

    A Möbius transform: one difference along each player's bit, M · 2^{M−1} subtractions in total.
    """
    dividends = worth.clone()
    for player in range(num_players(worth)):
        halves = dividends.unflatten(-1, (-1, 2, 2**player))  # without the player, with the player
        halves[..., 1, :] -= halves[..., 0, :]
    return dividends


def sum_over_members(weighted: Float[Tensor, "*games coalitions"]) -> Float[Tensor, "*games players"]:
    """Σ_{S∋i} a(S) for every player i, in about two passes over the table: it is halved player by player."""
    sums = []
    for _ in range(num_players(weighted)):
        without, including = weighted.chunk(2, -1)  # by the last remaining player
        sums.append(including.sum(-1))
        weighted = without + including
    return torch.stack(sums[::-1], -1) if sums else weighted[..., :0]
