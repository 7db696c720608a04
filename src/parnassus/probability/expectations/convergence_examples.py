"""Sequences of random variables that converge in one mode but not in another (Diehl sec. 5).

Each function maps outcomes ω and indices n = 1, 2, … to X_n(ω), one row per outcome.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def typewriter_block(n: Int[Tensor, "*shape"]) -> tuple[Int[Tensor, "*shape"], Int[Tensor, "*shape"]]:
    """The block m = 2, 3, … that contains n, and the position j = 1, …, m of n in it (Diehl sec. 5).

    Block m consists of the indices m(m−1)/2, …, m(m+1)/2 − 1.
    """
    if bool((n < 1).any()):
        raise ValueError(f"n must be at least 1; got n={int(n.min())}")
    m = ((1 + (8 * n.double() + 1).sqrt()) / 2).round().long()  # the largest m with m(m−1)/2 ≤ n, or one more
    m = torch.where(m * (m - 1) // 2 > n, m - 1, m)
    return m, n - m * (m - 1) // 2 + 1


def typewriter_sequence(omega: Float[Tensor, " outcomes"], n: Int[Tensor, " steps"]) -> Float[Tensor, "outcomes steps"]:
    """X_n(ω) = 1 if (j−1)/m ≤ ω < j/m, else 0: the typewriter sequence (Diehl sec. 5).

    It converges to 0 in probability and in every Lᵖ, as P[X_n ≠ 0] = 1/m, but for no ω, as each ω has X_n(ω) = 1 once
    in every block.
    """
    _check_unit_interval(omega)
    m, j = typewriter_block(n)
    return ((omega[:, None] >= (j - 1).to(omega) / m) & (omega[:, None] < j.to(omega) / m)).to(omega.dtype)


def spike_sequence(
    omega: Float[Tensor, " outcomes"], n: Int[Tensor, " steps"], *, power: float = 1.0
) -> Float[Tensor, "outcomes steps"]:
    """X_n(ω) = nᵃ if ω < 1/n, else 0, with a = `power` (Diehl sec. 5).

    It converges to 0 for every ω > 0, hence almost surely; E|X_n|ᵖ = n^(ap − 1), so in Lᵖ if and only if p < 1/a.
    """
    _check_unit_interval(omega)
    return torch.where(omega[:, None] * n < 1, n.to(omega) ** power, 0)


def alternating_sign_sequence(
    x: Float[Tensor, " outcomes"], n: Int[Tensor, " steps"]
) -> Float[Tensor, "outcomes steps"]:
    """X_n = (−1)ⁿ X, which for symmetric X converges to X in distribution only (Diehl sec. 5)."""
    return x[:, None] * (1 - 2 * (n % 2)).to(x)


def vanishing_sequence(x: Float[Tensor, " outcomes"], n: Int[Tensor, " steps"]) -> Float[Tensor, "outcomes steps"]:
    """X_n = X/n, which converges to 0 in every mode if X has all moments (Diehl sec. 5)."""
    return x[:, None] / n.to(x)


def _check_unit_interval(omega: Float[Tensor, " outcomes"]) -> None:
    if not bool(((omega >= 0) & (omega < 1)).all()):
        raise ValueError(f"omega must lie in [0, 1); got values from {float(omega.min()):g} to {float(omega.max()):g}")
