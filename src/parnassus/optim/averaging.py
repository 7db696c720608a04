"""Stochastic descent whose answer is the mean of its places, and a problem that is hard for it (book sec. 3.1)."""

from collections.abc import Callable
from math import inf

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.optim.gradient_descent import gradient_step
from parnassus.optim.problems import Problem

Slope = Callable[[int, Tensor], Tensor]
"""g_t at w: a subgradient of the t-th loss, the same loss every time or one drawn at random."""


def averaged_descent(
    slope: Slope, start: Float[Tensor, "*runs dim"], *, rate: float, steps: int
) -> Float[Tensor, "*runs dim"]:
    """w̄ = (1/T) Σ_{t<T} w⁽ᵗ⁾ of descent along stochastic subgradients, of any number of runs at once.

        w⁽ᵗ⁺¹⁾ = w⁽ᵗ⁾ − η g_t,   E[g_t] a subgradient of f at w⁽ᵗ⁾

    With η = R/(ρ√T) its expected excess is at most Rρ/√T (book sec. 3.1; Shalev-Shwartz & Ben-David 2014, thm. 14.8).
    """
    if not rate > 0 or steps < 1:
        raise ValueError(f"need rate > 0 and steps ≥ 1; got rate={rate}, steps={steps}")
    w, total = start, torch.zeros_like(start)
    for t in range(steps):
        total = total + w
        w = gradient_step(w, slope(t, w), rate)
    return total / steps


def biased_coin(bias: float) -> Problem:
    """½ (1 + δ)|w − 1| + ½ (1 − δ)|w + 1| from w = 0: the median of a coin that shows +1 a little more often.

    Least at w = 1, by 2δ less than at −1; T tosses do not tell which side is favoured while δ is below about 1/√T.
    """
    if not 0 < bias <= 1:
        raise ValueError(f"need 0 < bias ≤ 1; got bias={bias}")

    def loss(w: Tensor) -> Tensor:
        return ((1 + bias) * (w - 1).abs() + (1 - bias) * (w + 1).abs()).sum() / 2

    start = torch.zeros(1, dtype=torch.float64)
    return Problem(loss, start, torch.ones_like(start), alpha=0.0, beta=inf)


def coin_slope(bias: float, *, generator: torch.Generator) -> Slope:
    """1 above the toss z and else −1, z = 1 with probability ½ (1 + δ), else −1: E is a subgradient of `biased_coin`.

    A subgradient of |w − z| of length ρ = 1, at w = z too.
    """

    def slope(_: int, w: Float[Tensor, "*runs dim"]) -> Float[Tensor, "*runs dim"]:
        heads = torch.rand(w.shape, generator=generator, dtype=w.dtype) < (1 + bias) / 2
        toss = torch.where(heads, 1.0, -1.0).to(w.dtype)
        return torch.where(w > toss, 1.0, -1.0).to(w.dtype)

    return slope
