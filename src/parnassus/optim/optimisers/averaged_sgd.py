"""Averaged SGD: the mean of the iterates as the result, and a hard problem for it (book sec. 3.1)."""

from collections.abc import Callable
from math import inf

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.optim.landscapes.problems import OptimisationProblem
from parnassus.optim.optimisers.gradient_descent import gradient_step

Subgradient = Callable[[int, Tensor], Tensor]
"""g_t at w: a subgradient of the loss of step t, which may be sampled at random."""


def averaged_sgd(
    subgradient: Subgradient, start: Float[Tensor, "*runs dim"], *, learning_rate: float, steps: int
) -> Float[Tensor, "*runs dim"]:
    """Mean iterate w̄ = (1/T) Σ_{t<T} w⁽ᵗ⁾ of SGD along stochastic subgradients, for a batch of runs.

        w⁽ᵗ⁺¹⁾ = w⁽ᵗ⁾ − η g_t,   E[g_t] a subgradient of f at w⁽ᵗ⁾

    With η = R/(ρ√T), E f(w̄) − f* is at most Rρ/√T (book sec. 3.1; Shalev-Shwartz & Ben-David 2014, thm. 14.8).
    """
    if not learning_rate > 0 or steps < 1:
        raise ValueError(f"need learning_rate > 0 and steps ≥ 1; got learning_rate={learning_rate}, steps={steps}")
    w, total = start, torch.zeros_like(start)
    for t in range(steps):
        total = total + w
        w = gradient_step(w, subgradient(t, w), learning_rate)
    return total / steps


def biased_coin(bias: float) -> OptimisationProblem:
    """½ (1 + δ)|w − 1| + ½ (1 − δ)|w + 1| from w = 0: the biased-coin problem, the median of z = ±1.

    P(z = 1) = ½ (1 + δ). The minimum is at w = 1, by 2δ lower than the value at −1; T samples cannot detect a bias
    δ below about 1/√T.
    """
    if not 0 < bias <= 1:
        raise ValueError(f"need 0 < bias ≤ 1; got bias={bias}")

    def loss(w: Tensor) -> Tensor:
        return ((1 + bias) * (w - 1).abs() + (1 - bias) * (w + 1).abs()).sum() / 2

    start = torch.zeros(1, dtype=torch.float64)
    return OptimisationProblem(loss, start, torch.ones_like(start), alpha=0.0, beta=inf)


def coin_subgradient(bias: float, *, generator: torch.Generator) -> Subgradient:
    """Stochastic subgradient of `biased_coin`: a subgradient of |w − z| for z = ±1 with P(z = 1) = ½ (1 + δ).

    It is 1 for w > z and −1 otherwise, of norm ρ = 1 everywhere.
    """

    def sample_subgradient(_: int, w: Float[Tensor, "*runs dim"]) -> Float[Tensor, "*runs dim"]:
        heads = torch.rand(w.shape, generator=generator, dtype=w.dtype) < (1 + bias) / 2
        toss = torch.where(heads, 1.0, -1.0).to(w.dtype)
        return torch.where(w > toss, 1.0, -1.0).to(w.dtype)

    return sample_subgradient
