"""Bankruptcy problems: contested garment, run to the bank, the Talmud rule (book sec. 17.1)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.shapley.games.cooperative_games import all_coalitions
from parnassus.shapley.games.shapley_values import permutation_table


def contested_garment(estate: float, first: float, second: float) -> tuple[float, float]:
    """Each receives the part conceded by the other and half of the rest (book sec. 17.1, Talmud Baba Mezi'a 2a)."""
    _check_estate(estate, torch.tensor([first, second], dtype=torch.float64))
    conceded_first, conceded_second = max(0.0, estate - second), max(0.0, estate - first)
    contested = estate - conceded_first - conceded_second
    return conceded_first + contested / 2, conceded_second + contested / 2


def optimistic_bankruptcy_game(estate: float, claims: Float[Tensor, " players"]) -> Float[Tensor, " coalitions"]:
    """v(S) = min(E, Σ_{i∈S} d_i): the payment of a coalition that is paid first (book sec. 17.1)."""
    _check_estate(estate, claims)
    return (all_coalitions(len(claims)).to(claims) @ claims).clamp(max=estate)


def pessimistic_bankruptcy_game(estate: float, claims: Float[Tensor, " players"]) -> Float[Tensor, " coalitions"]:
    """v(S) = max(0, E − Σ_{i∉S} d_i): the remainder after all others are paid (O'Neill 1982)."""
    _check_estate(estate, claims)
    return (estate - (~all_coalitions(len(claims))).to(claims) @ claims).clamp(min=0.0)


def run_to_the_bank(estate: float, claims: Float[Tensor, " players"]) -> Float[Tensor, " players"]:
    """Mean over all orders of arrival, in each of which a claimant takes min(claim, rest) (book sec. 17.1)."""
    return permutation_table(optimistic_bankruptcy_game(estate, claims)).values


def talmud_rule(estate: float, claims: Float[Tensor, " players"]) -> Float[Tensor, " players"]:
    """The division in which every pair splits its total as a contested garment (Aumann and Maschler 1985).

    Up to half of the sum of claims the awards are equal, beyond it the losses; both are limited by half of each claim.
    """
    _check_estate(estate, claims)
    half, total = claims / 2, float(claims.sum())
    if estate <= total / 2:
        return constrained_equal_awards(estate, half)
    return claims - constrained_equal_awards(total - estate, half)


def constrained_equal_awards(amount: float, limits: Float[Tensor, " players"]) -> Float[Tensor, " players"]:
    """min(limit_i, λ), with λ such that the awards sum to `amount`."""
    order = limits.sort().values
    count = len(order)
    below = torch.cat([order.new_zeros(1), order.cumsum(0)])[:-1]  # awarded to those who have reached their limits
    levels = (amount - below) / torch.arange(count, 0, -1, dtype=order.dtype, device=order.device)
    level = levels[levels <= order][:1]
    return torch.minimum(limits, level if len(level) else order[-1:])


def _check_estate(estate: float, claims: Float[Tensor, " players"]) -> None:
    if not bool((claims >= 0).all()) or not 0 <= estate <= float(claims.sum()):
        raise ValueError(
            "claims must not be negative and together at least the estate; "
            f"got estate={estate}, claims={claims.tolist()}"
        )
