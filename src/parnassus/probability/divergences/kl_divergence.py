"""Kullback-Leibler, Jeffreys and Jensen-Shannon divergence of tables, densities and samples (Diehl sec. 1.4, 6).

All values are in nats; `base=2.0` gives bits. The conventions for tables are the limits of the formulas:

    0 log 0 = 0 log(0/q) = 0, also for q = 0;   p log(p/0) = +∞ for p > 0
"""

from math import e
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.probability.distributions.simplex import check_pair
from parnassus.probability.divergences.entropy import nats_per_unit, xlogy
from parnassus.probability.expectations.expectation import (
    Function,
    MonteCarloEstimate,
    expectation_by_quadrature,
    expectation_by_sampling,
)

LogDensity: TypeAlias = Function
"""A function that maps points to the logarithm of a density."""


def kl_divergence(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"], *, base: float = e
) -> Float[Tensor, "*#batch"]:
    """KL(P ‖ Q) = Σ_i p_i log(p_i / q_i) = E_P[log P/Q] (Diehl sec. 1.4).

    Non-negative, 0 only for P = Q, and +∞ if and only if some outcome has P(i) > 0 = Q(i).
    """
    check_pair(p, q)
    return (xlogy(p, p) - xlogy(p, q)).sum(-1) / nats_per_unit(base)


def jeffreys_divergence(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"], *, base: float = e
) -> Float[Tensor, "*#batch"]:
    """J(P, Q) = KL(P ‖ Q) + KL(Q ‖ P) = Σ_i (p_i − q_i) log(p_i / q_i): symmetric and unbounded.

    The book calls half of it the Jensen-Shannon divergence (book eq. 6.5).
    """
    return kl_divergence(p, q, base=base) + kl_divergence(q, p, base=base)


def jensen_shannon_divergence(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"], *, base: float = e
) -> Float[Tensor, "*#batch"]:
    """JS(P, Q) = ½ KL(P ‖ M) + ½ KL(Q ‖ M), M = ½ (P + Q): symmetric, at most log 2, its root a metric.

    The divergence of this name in the book (book eq. 6.5) is half of `jeffreys_divergence`.
    """
    check_pair(p, q)
    middle = (p + q) / 2
    return (kl_divergence(p, middle, base=base) + kl_divergence(q, middle, base=base)) / 2


def is_absolutely_continuous(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"]
) -> Bool[Tensor, "*#batch"]:
    """Whether P ≪ Q: events of probability 0 under Q have probability 0 under P (Diehl sec. 6)."""
    check_pair(p, q)
    return ~((p > 0) & (q == 0)).any(-1)


def density_ratio(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"]
) -> Float[Tensor, "*#batch outcomes"]:
    """dP/dQ with P(A) = Σ_{i∈A} (dP/dQ)(i) Q(i) for every event A, where P ≪ Q (Diehl sec. 6).

    Where both probabilities are 0 the value is arbitrary; here it is 1.
    """
    if not bool(is_absolutely_continuous(p, q).all()):
        raise ValueError("dP/dQ exists only if P ≪ Q; some outcome has P(i) > 0 = Q(i)")
    return torch.where(q > 0, p / torch.where(q > 0, q, 1), 1)


def kl_by_quadrature(
    log_p: LogDensity, log_q: LogDensity, *, low: float, high: float, points: int = 10_001
) -> Float[Tensor, ""]:
    """KL(P ‖ Q) = ∫ p log(p/q) dx for densities on the real line, over [low, high] (Diehl sec. 6)."""
    return expectation_by_quadrature(
        lambda x: _log_ratio(log_p, log_q, x), lambda x: log_p(x).exp(), low=low, high=high, points=points
    )


def kl_by_sampling(log_p: LogDensity, log_q: LogDensity, draws: Float[Tensor, "draws *event"]) -> MonteCarloEstimate:
    """KL(P ‖ Q) ≈ (1/n) Σ_i log p(x_i)/q(x_i) over samples x_i of P, with standard error (book sec. 6.1).

    Unbiased; single log-ratios may be negative, and so may the estimate from few samples.
    """
    return expectation_by_sampling(lambda x: _log_ratio(log_p, log_q, x), draws)


def _log_ratio(log_p: LogDensity, log_q: LogDensity, x: Tensor) -> Tensor:
    """The log-ratio log p − log q, and 0 where p is 0, so that 0 · log 0 contributes nothing."""
    at_p = log_p(x)
    return torch.where(at_p > -torch.inf, at_p - log_q(x), 0)
