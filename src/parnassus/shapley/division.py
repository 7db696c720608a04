"""How to share what does not suffice: contested garment, run to the bank, the Talmud's rule (book sec. 17.1)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.shapley.game import members
from parnassus.shapley.values import by_all_orders


def contested_garment(estate: float, first: float, second: float) -> tuple[float, float]:
    """Each gets what the other does not claim, and half of what both do (book sec. 17.1, Talmud Baba Mezi'a 2a)."""
    _checked(estate, torch.tensor([first, second], dtype=torch.float64))
    conceded_first, conceded_second = max(0.0, estate - second), max(0.0, estate - first)
    contested = estate - conceded_first - conceded_second
    return conceded_first + contested / 2, conceded_second + contested / 2


def hopeful_game(estate: float, claims: Float[Tensor, " players"]) -> Float[Tensor, " coalitions"]:
    """v(S) = min(E, Σ_{i∈S} d_i): what a coalition can take if it comes first (book sec. 17.1)."""
    _checked(estate, claims)
    return (members(len(claims)).to(claims) @ claims).clamp(max=estate)


def cautious_game(estate: float, claims: Float[Tensor, " players"]) -> Float[Tensor, " coalitions"]:
    """v(S) = max(0, E − Σ_{i∉S} d_i): what the others leave to a coalition at worst (O'Neill 1982)."""
    _checked(estate, claims)
    return (estate - (~members(len(claims))).to(claims) @ claims).clamp(min=0.0)


def run_to_the_bank(estate: float, claims: Float[Tensor, " players"]) -> Float[Tensor, " players"]:
    """Claimants arrive in a random order, each takes min(claim, what is left): the mean (book sec. 17.1)."""
    return by_all_orders(hopeful_game(estate, claims)).values


def talmud_rule(estate: float, claims: Float[Tensor, " players"]) -> Float[Tensor, " players"]:
    """The division in which every two share what they have together as a contested garment (Aumann and Maschler 1985).

    All are paid alike up to half of their claims; beyond half of the sum, all lose alike down to half.
    """
    _checked(estate, claims)
    half, total = claims / 2, float(claims.sum())
    if estate <= total / 2:
        return alike(estate, half)
    return claims - alike(total - estate, half)


def alike(amount: float, limits: Float[Tensor, " players"]) -> Float[Tensor, " players"]:
    """min(limit_i, λ), with the λ at which the parts sum to `amount`."""
    order = limits.sort().values
    count = len(order)
    below = torch.cat([order.new_zeros(1), order.cumsum(0)])[:-1]  # paid to those who have reached their limits
    levels = (amount - below) / torch.arange(count, 0, -1).to(order)
    level = levels[levels <= order][:1]
    return torch.minimum(limits, level if len(level) else order[-1:])


def _checked(estate: float, claims: Float[Tensor, " players"]) -> None:
    if not bool((claims >= 0).all()) or not 0 <= estate <= float(claims.sum()):
        raise ValueError(
            "claims must not be negative and together at least the estate; "
            f"got estate={estate}, claims={claims.tolist()}"
        )
