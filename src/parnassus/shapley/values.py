"""What a player's part is worth: Shapley's value, Banzhaf's, and what two have together (book sec. 17.2)."""

from collections.abc import Callable, Iterator
from itertools import permutations
from math import comb, factorial
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, Num
from scipy.special import ndtr, stdtrit
from torch import Tensor

from parnassus.shapley.game import dividends, members, players_of, sizes, with_each


def subset_weights(players: int) -> Float[Tensor, " sizes"]:
    """|S|! (M − |S| − 1)! / M! = 1 / (M C(M − 1, |S|)) for |S| = 0 … M − 1 (book eqs. 17.3, 17.8)."""
    return torch.tensor([1 / (players * comb(players - 1, size)) for size in range(players)], dtype=torch.float64)


def as_real(worth: Num[Tensor, "*games coalitions"]) -> Float[Tensor, "*games coalitions"]:
    """Worths that may be whole numbers, as reals: in whole numbers all weights would be 0."""
    return worth if worth.is_floating_point() else worth.double()


def shapley_values(worth: Num[Tensor, "*games coalitions"]) -> Float[Tensor, "*games players"]:
    """φ_i = (1/M) Σ_{S∌i} [v(S ∪ i) − v(S)] / C(M − 1, |S|) (book eq. 17.3).

    With w(s) the weight of a coalition of s players and w(−1) = w(M) = 0, it is Σ_{S∋i} [w(|S| − 1) + w(|S|)] v(S) −
    Σ_S w(|S|) v(S): each worth is read twice, not M times.
    """
    worth = as_real(worth)
    players = players_of(worth)
    if players == 0:
        return worth[..., :0]
    padded = torch.cat([torch.zeros(1), subset_weights(players), torch.zeros(1)]).to(worth)
    size = sizes(players).to(worth.device)
    joining, staying = padded[size], padded[size + 1]
    return with_each((joining + staying) * worth) - (worth @ staying)[..., None]


def banzhaf_values(worth: Num[Tensor, "*games coalitions"]) -> Float[Tensor, "*games players"]:
    """β_i = 2^{1−M} Σ_{S∌i} [v(S ∪ i) − v(S)]: coalitions count alike, parts sum to anything (Banzhaf 1965)."""
    worth = as_real(worth)
    weight = 0.5 ** (players_of(worth) - 1)
    return weight * (2 * with_each(worth) - worth.sum(-1, keepdim=True))


def interactions(worth: Num[Tensor, "*games coalitions"]) -> Float[Tensor, "*games players players"]:
    """I_ij = Σ_{T⊇{i,j}} m(T) / (|T| − 1): what two have together beyond what each has (Grabisch and Roubens 1999).

    m(T) are the dividends. On the diagonal is φ_i = Σ_{T∋i} m(T) / |T|, Shapley's value, found another way.
    """
    worth = as_real(worth)
    players = players_of(worth)
    m, size = dividends(worth), sizes(players).to(worth)
    is_in = members(players).to(worth)
    pairs = torch.einsum("...s,si,sj->...ij", m / (size - 1).clamp(min=1), is_in, is_in)
    alone = with_each(m / size.clamp(min=1))
    return pairs - torch.diag_embed(pairs.diagonal(dim1=-2, dim2=-1)) + torch.diag_embed(alone)


def marginals(
    worth: Float[Tensor, " coalitions"], order: Int[Tensor, "*orders players"]
) -> Float[Tensor, "*orders players"]:
    """v(pre_i ∪ i) − v(pre_i): what each player adds on arriving in this order, by player (book sec. 17.2)."""
    before = torch.zeros_like(order)
    before[..., 1:] = (2**order).cumsum(-1)[..., :-1]  # who is there already, as a number
    added = worth[before + 2**order] - worth[before]
    return torch.empty_like(added).scatter_(-1, order, added)


class ByOrder(NamedTuple):
    """All orders of arrival, what each player adds in each, and the mean: Shapley's value."""

    orders: Int[Tensor, "orders players"]
    added: Float[Tensor, "orders players"]
    values: Float[Tensor, " players"]


def by_all_orders(worth: Float[Tensor, " coalitions"]) -> ByOrder:
    """φ_i = E[v(pre_i ∪ i) − v(pre_i)] over all M! orders: the table of the book's example (book eq. 17.4)."""
    players = players_of(worth)
    if players > 8:
        raise ValueError(f"{players} players arrive in {factorial(players):,} orders; use shapley_values or by_orders")
    orders = torch.tensor(list(permutations(range(players))), dtype=torch.long).view(-1, players)
    added = marginals(worth, orders)
    return ByOrder(orders, added, added.mean(0))


class Estimate(NamedTuple):
    """A mean over samples and its standard error, `widened` where that is learned from few."""

    values: Float[Tensor, "*games players"]
    errors: Float[Tensor, "*games players"]


def widened(
    errors: Float[Tensor, "*games players"], freedom: Float[Tensor, "*#games #players"] | int
) -> Float[Tensor, "*games players"]:
    """Standard errors ± 2 of which hold the truth 19 times in 20, though learned from few samples (Student 1908).

    `freedom` is how many squares an error rests on, beyond those that the values took: 2 of Gauss's are t of Student's,
    P(|T| < t) = P(|Z| < 2), and errors grow by t/2: sevenfold with one degree of freedom, by 1 % with a hundred.
    """
    degrees = torch.as_tensor(freedom, dtype=torch.float64).clamp(min=1.0)
    student = torch.from_numpy(np.asarray(stdtrit(degrees.cpu().numpy(), ndtr(2.0))))
    return errors * (student / 2).to(errors)


def broken_axioms(
    value: Callable[[Float[Tensor, " coalitions"]], Float[Tensor, " players"]],
    worth: Float[Tensor, " coalitions"],
    other: Float[Tensor, " coalitions"],
) -> Iterator[tuple[str, float]]:
    """By how much `value` breaks each of Shapley's axioms on these two games (book sec. 17.2).

    Efficiency: the parts sum to the whole. Symmetry: players who add the same get the same. Dummy: who adds nothing
    gets nothing. Additivity: the value of a sum of games is the sum of their values.
    """
    players = players_of(worth)
    yield "efficiency", float((value(worth).sum() - worth[-1]).abs())
    swapped = exchanged(worth, 0, players - 1)
    yield "symmetry", float((value(worth + swapped)[0] - value(worth + swapped)[-1]).abs())
    yield "dummy", float(value(without_part(worth, 0))[0].abs())
    yield "additivity", float((value(worth + other) - value(worth) - value(other)).abs().max())


def exchanged(worth: Float[Tensor, " coalitions"], first: int, second: int) -> Float[Tensor, " coalitions"]:
    """The same game with two players exchanged."""
    order = list(range(players_of(worth)))
    order[first], order[second] = order[second], order[first]
    return worth[(members(len(order)) * 2 ** torch.tensor(order)).sum(-1)]


def without_part(worth: Float[Tensor, " coalitions"], player: int) -> Float[Tensor, " coalitions"]:
    """The same game with a player who adds nothing to any coalition."""
    return worth[torch.arange(len(worth)) & ~(1 << player)]
