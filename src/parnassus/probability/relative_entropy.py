"""Kullback-Leibler divergence beyond tables: density ratios, densities and draws (Diehl sec. 6).

Tables have `kl_divergence`; here are dP/dQ itself and the same divergence by quadrature and by sampling.
"""

from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.probability.expectation import (
    Estimate,
    Function,
    expectation_by_quadrature,
    expectation_by_sampling,
)
from parnassus.probability.simplex import require_pair

LogDensity: TypeAlias = Function
"""Places in, the logarithm of a density at each out."""


def absolutely_continuous(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"]
) -> Bool[Tensor, "*#batch"]:
    """Whether P ≪ Q: what cannot happen under Q cannot happen under P (Diehl sec. 6)."""
    require_pair(p, q)
    return ~((p > 0) & (q == 0)).any(-1)


def density_ratio(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"]
) -> Float[Tensor, "*#batch outcomes"]:
    """dP/dQ with P(A) = Σ_{i∈A} (dP/dQ)(i) Q(i) for every event A, where P ≪ Q (Diehl sec. 6).

    Outcomes that have no mass under either may take any value; here they take 1.
    """
    if not bool(absolutely_continuous(p, q).all()):
        raise ValueError("dP/dQ exists only where P ≪ Q; some outcome has P(i) > 0 = Q(i)")
    return torch.where(q > 0, p / torch.where(q > 0, q, 1), 1)


def kl_by_quadrature(
    log_p: LogDensity, log_q: LogDensity, *, low: float, high: float, points: int = 10_001
) -> Float[Tensor, ""]:
    """KL(P ‖ Q) = ∫ p log(p/q) dx for densities on the line, over [low, high] (Diehl sec. 6)."""
    return expectation_by_quadrature(
        lambda x: _log_ratio(log_p, log_q, x), lambda x: log_p(x).exp(), low=low, high=high, points=points
    )


def kl_by_sampling(log_p: LogDensity, log_q: LogDensity, draws: Float[Tensor, "draws *event"]) -> Estimate:
    """KL(P ‖ Q) ≈ (1/n) Σ_i log p(x_i)/q(x_i) over draws x_i of P, with its standard error (book sec. 6.1).

    Unbiased; single log-ratios may be negative, and so may the mean of a few.
    """
    return expectation_by_sampling(lambda x: _log_ratio(log_p, log_q, x), draws)


def _log_ratio(log_p: LogDensity, log_q: LogDensity, x: Tensor) -> Tensor:
    """The logarithm log p − log q, and 0 where p is 0, so that 0 · log 0 adds nothing."""
    at_p = log_p(x)
    return torch.where(at_p > -torch.inf, at_p - log_q(x), 0)
