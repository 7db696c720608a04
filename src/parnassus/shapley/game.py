"""Games of coalitions: what every subset of players is worth, as one table (book sec. 17.1).

A coalition S is the number Σ_{i∈S} 2^i: the empty one is 0, everybody together is 2^M − 1. A table of worths has one
entry for each, on its last axis; the axes before it are many games at once.
"""

from collections.abc import Callable, Iterable, Mapping
from math import log2
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Worth: TypeAlias = Callable[[Bool[Tensor, "count players"]], Float[Tensor, "*games count"]]
"""What many coalitions are worth, in one game or in several that share them."""

MOST = 24
"""Players of a game that is written out: sixteen million coalitions."""


def players_of(worth: Float[Tensor, "*games coalitions"]) -> int:
    """M, from 2^M worths."""
    count = worth.shape[-1]
    if count < 1 or count & (count - 1):
        raise ValueError(f"a game of M players has 2^M worths, one for each coalition; got {count}")
    return int(log2(count))


def members(players: int) -> Bool[Tensor, "coalitions players"]:
    """Who is in each coalition, all 2^M of them in order."""
    if not 0 <= players <= MOST:
        raise ValueError(f"a game is written out for 0 to {MOST} players; got players={players}")
    return (torch.arange(2**players)[:, None] >> torch.arange(players)) & 1 == 1


def are_all(coalitions: Bool[Tensor, "count players"]) -> bool:
    """Whether these are all 2^M coalitions in order."""
    count, players = coalitions.shape
    there = players <= MOST and count == 2**players
    return there and torch.equal(coalitions, members(players).to(coalitions.device))


def sizes(players: int) -> Int[Tensor, " coalitions"]:
    """|S| of every coalition."""
    size = torch.zeros(1, dtype=torch.long)
    for _ in range(players):  # those with the next player follow those without
        size = torch.cat([size, size + 1])
    return size


def game(players: int, worth: Callable[[frozenset[int]], float]) -> Float[Tensor, " coalitions"]:
    """The table of a worth that is given as a function of the set of players, who are called 0 … M − 1.

    What nobody achieves is worth nothing: v(∅) = 0, of which the text lost the ∅ (book sec. 17.1).
    """
    table = [worth(frozenset(row.nonzero()[:, 0].tolist())) for row in members(players)]
    if table[0] != 0:
        raise ValueError(f"the empty coalition must be worth 0; got {table[0]}")
    return torch.tensor(table, dtype=torch.float64)


def game_of(table: Mapping[tuple[int, ...], float], players: int) -> Float[Tensor, " coalitions"]:
    """The table of worths that are given one by one, {(0,): 100, (0, 1): 270, …}; the others are worth 0."""
    worths = {frozenset(coalition): worth for coalition, worth in table.items()}
    unknown = sorted({player for coalition in worths for player in coalition} - set(range(players)))
    if unknown:
        raise ValueError(f"players are called 0 to {players - 1}; got {unknown}")
    return game(players, lambda coalition: worths.get(coalition, 0.0))


def looked_up(worth: Float[Tensor, "*games coalitions"]) -> Worth:
    """A game that is written out, as one that is asked."""
    numbers = 2 ** torch.arange(players_of(worth))
    return lambda coalitions: worth[..., (coalitions.long() @ numbers).to(worth.device)]


def unanimity(players: int, needed: Iterable[int]) -> Float[Tensor, " coalitions"]:
    """A coalition is worth 1 if all of `needed` are in it, else 0; any game is a sum of such games (book sec. 17.2)."""
    wanted = frozenset(needed)
    if not wanted or not wanted <= set(range(players)):
        raise ValueError(f"those who are needed must be some of the players 0 to {players - 1}; got {sorted(wanted)}")
    return game(players, lambda coalition: float(wanted <= coalition))


def dividends(worth: Float[Tensor, "*games coalitions"]) -> Float[Tensor, "*games coalitions"]:
    """m(T) = Σ_{S⊆T} (−1)^{|T|−|S|} v(S), what T achieves beyond its parts: v(S) = Σ_{T⊆S} m(T) (Harsanyi 1963).

    One difference along every player's bit: M · 2^{M−1} subtractions in all.
    """
    part = worth.clone()
    for player in range(players_of(worth)):
        halves = part.unflatten(-1, (-1, 2, 2**player))  # without the player, with the player
        halves[..., 1, :] -= halves[..., 0, :]
    return part


def with_each(weighted: Float[Tensor, "*games coalitions"]) -> Float[Tensor, "*games players"]:
    """Σ_{S∋i} a(S) for every player i, in two passes over the table: fold it in half, player by player."""
    sums = []
    for _ in range(players_of(weighted)):
        without, having = weighted.chunk(2, -1)  # the last player of those left
        sums.append(having.sum(-1))
        weighted = without + having
    return torch.stack(sums[::-1], -1) if sums else weighted[..., :0]
