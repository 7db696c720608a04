"""Sequences of random variables that converge in one way and not in another (Diehl sec. 5).

Each takes outcomes ω of a space and numbers n = 1, 2, …, and gives X_n(ω) with a row for each outcome.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def typewriter_block(n: Int[Tensor, "*shape"]) -> tuple[Int[Tensor, "*shape"], Int[Tensor, "*shape"]]:
    """The block m = 2, 3, … that holds n, and the place j = 1, …, m of n in it (Diehl sec. 5).

    Block m has the numbers m(m−1)/2, …, m(m+1)/2 − 1.
    """
    if bool((n < 1).any()):
        raise ValueError(f"the sequence begins with n = 1; got n = {int(n.min())}")
    m = ((1 + (8 * n.double() + 1).sqrt()) / 2).round().long()  # the largest m with m(m−1)/2 ≤ n, or one more
    m = torch.where(m * (m - 1) // 2 > n, m - 1, m)
    return m, n - m * (m - 1) // 2 + 1


def typewriter(omega: Float[Tensor, " outcomes"], n: Int[Tensor, " steps"]) -> Float[Tensor, "outcomes steps"]:
    """X_n(ω) = 1 if (j−1)/m ≤ ω < j/m, else 0: ever narrower keys, struck from left to right for ever (Diehl sec. 5).

    To 0 in probability and in every Lᵖ, as P[X_n ≠ 0] = 1/m; for no ω at all, as each is struck once a block.
    """
    _require_unit_interval(omega)
    m, j = typewriter_block(n)
    return ((omega[:, None] >= (j - 1).to(omega) / m) & (omega[:, None] < j.to(omega) / m)).to(omega.dtype)


def spike(
    omega: Float[Tensor, " outcomes"], n: Int[Tensor, " steps"], *, power: float = 1.0
) -> Float[Tensor, "outcomes steps"]:
    """X_n(ω) = nᵃ if ω < 1/n, else 0, with a = `power` (Diehl sec. 5).

    To 0 for every ω > 0, so almost surely; E|X_n|ᵖ = n^(ap − 1), so in Lᵖ exactly if p < 1/a.
    """
    _require_unit_interval(omega)
    return torch.where(omega[:, None] * n < 1, n.to(omega) ** power, 0)


def mirrored(x: Float[Tensor, " outcomes"], n: Int[Tensor, " steps"]) -> Float[Tensor, "outcomes steps"]:
    """X_n = (−1)ⁿ X: if X is symmetric, to X in distribution; to X in no other way (Diehl sec. 5)."""
    return x[:, None] * (1 - 2 * (n % 2)).to(x)


def shrinking(x: Float[Tensor, " outcomes"], n: Int[Tensor, " steps"]) -> Float[Tensor, "outcomes steps"]:
    """X_n = X/n: to 0 in every way, if X has all moments (Diehl sec. 5)."""
    return x[:, None] / n.to(x)


def _require_unit_interval(omega: Float[Tensor, " outcomes"]) -> None:
    if not bool(((omega >= 0) & (omega < 1)).all()):
        raise ValueError(f"outcomes must lie in [0, 1); got {float(omega.min()):g} to {float(omega.max()):g}")
