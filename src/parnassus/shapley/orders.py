"""Shapley values from some orders of arrival, drawn at random or in balance (book eq. 17.4; Castro et al. 2009).

An order of M players asks about M − 1 coalitions: nobody and everybody are common to all. What the players add along
it sums to v(everybody) − v(nobody), so the parts of every mean over orders do too, whatever the orders are.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.shapley.game import Worth
from parnassus.shapley.values import Estimate, widened


def random_orders(players: int, count: int, generator: torch.Generator | None = None) -> Int[Tensor, "count players"]:
    """Orders that know nothing of each other; a longer list from one seed begins as the shorter one does."""
    return torch.stack([torch.randperm(players, generator=generator) for _ in range(count)])


def balanced_orders(players: int, count: int, generator: torch.Generator | None = None) -> Int[Tensor, "count players"]:
    """Of every M orders one after the other each has every player at another place: rows of random Latin squares.

    In row k of a square stands π((k + τ(place)) mod M), π and τ drawn: each order alone is as random as any.
    """
    shifts = torch.arange(players)[:, None]
    squares = []
    for _ in range(-(-count // players)):
        who, where = (torch.randperm(players, generator=generator) for _ in range(2))
        squares.append(who[(shifts + where) % players])
    return torch.cat(squares)[:count]


def arrivals(
    worth: Worth, ends: Float[Tensor, "*games 2"], orders: Int[Tensor, "count players"]
) -> Float[Tensor, "*games count players"]:
    """v(pre_i ∪ i) − v(pre_i): what each player adds on arriving in each order, by player (book sec. 17.2)."""
    count, players = orders.shape
    places = orders.argsort(-1)
    before = places[:, None] < torch.arange(1, players)[:, None]  # who is there when 1, …, M − 1 are
    inner = worth(before.flatten(0, 1)).unflatten(-1, (count, players - 1))
    nobody, everybody = ends[..., None, :].expand(*inner.shape[:-1], 2).split(1, -1)
    added = torch.cat([nobody, inner, everybody], -1).diff(dim=-1)
    return added.gather(-1, places.to(added.device).expand(added.shape))


def by_orders(
    worth: Worth, players: int, budget: int, *, mirrored: bool = False, generator: torch.Generator | None = None
) -> Estimate:
    """The mean of what players add over random orders, unbiased, from about `budget` coalitions (book eq. 17.4).

    `mirrored` takes each order with its reverse: what any two have together is then shared without error, but there are
    half as many pairs as orders, and what three have together errs more.
    """
    ends = ends_of(worth, players)
    if players < 2:
        return equal_shares(ends, players)
    orders = random_orders(players, _affordable(players, budget, mirrored=mirrored), generator)
    added = _averaged(worth, ends, orders, mirrored=mirrored)
    return Estimate(added.mean(-2), widened(added.std(-2) / len(orders) ** 0.5, len(orders) - 1))


def by_balanced_orders(
    worth: Worth, players: int, budget: int, *, mirrored: bool = False, generator: torch.Generator | None = None
) -> Estimate:
    """The same over orders in which all players stand at all places equally often: what the place does cancels.

    Of n = b M + r orders b squares are complete. With σ² the mean variance at a place and τ² that of the places' means

        n² Var φ̂ = n σ² + r (M − r)/(M − 1) τ²

    in which the rows of a square count as independent once their places are known. Before there are two squares the
    orders count as independent, which is too cautious.
    """
    ends = ends_of(worth, players)
    if players < 2:
        return equal_shares(ends, players)
    orders = balanced_orders(players, _affordable(players, budget, mirrored=mirrored), generator)
    added = _averaged(worth, ends, orders, mirrored=mirrored)
    count = len(orders)
    squares, rest = divmod(count, players)
    if squares < 2:
        return Estimate(added.mean(-2), widened(added.std(-2) / count**0.5, count - 1))
    places = orders.argsort(-1)[: squares * players].to(added.device)
    inside = added[..., : squares * players, :].unflatten(-2, (squares, players))
    by_place = inside.gather(-2, places.unflatten(0, (squares, players)).argsort(-2).expand(inside.shape))
    within = by_place.var(-3).mean(-2)
    between = (by_place.mean(-3).var(-2) * (players - 1) / players - within / squares).clamp(min=0.0)
    variance = count * within + rest * (players - rest) / (players - 1) * between
    return Estimate(added.mean(-2), widened(variance.sqrt() / count, players * (squares - 1)))


def ends_of(worth: Worth, players: int) -> Float[Tensor, "*games 2"]:
    """What nobody and everybody are worth."""
    if players < 1:
        raise ValueError(f"there must be players; got players={players}")
    return worth(torch.tensor([[False], [True]]).expand(2, players))


def equal_shares(ends: Float[Tensor, "*games 2"], players: int) -> Estimate:
    """Everybody's gain in equal parts: certain, and right where there is one player."""
    equal = (ends.diff(dim=-1) / players).expand(*ends.shape[:-1], players)
    return Estimate(equal, torch.zeros_like(equal))


def _averaged(worth: Worth, ends: Tensor, orders: Tensor, *, mirrored: bool) -> Tensor:
    """What each adds, by order; a pair of mirrored ones is one sample: its halves are not independent."""
    added = arrivals(worth, ends, orders)
    return (added + arrivals(worth, ends, orders.flip(-1))) / 2 if mirrored else added


def _affordable(players: int, budget: int, *, mirrored: bool) -> int:
    """Orders, or pairs of mirrored ones, that ask about at most `budget` coalitions."""
    each = (players - 1) * (2 if mirrored else 1)
    if budget < 2 * each:
        raise ValueError(
            f"an error needs two {'pairs of mirrored orders' if mirrored else 'orders'}, here {2 * each} coalitions of "
            f"{players} players; got budget={budget}"
        )
    return budget // each
