"""Entropy, cross-entropy and the divergences made of them (Diehl sec. 1.4).

All are in nats; `base=2.0` gives bits. Logarithms follow the conventions that make them limits:

    0 log 0 = 0 log(0/q) = 0, also for q = 0;   p log(p/0) = +∞ for p > 0
"""

from math import e, log

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.simplex import require_distribution, require_pair


def entropy(p: Float[Tensor, "*batch outcomes"], *, base: float = e) -> Float[Tensor, "*batch"]:
    """H(P) = −Σ_i p_i log p_i ≥ 0, the expected surprise (Diehl sec. 1.4)."""
    require_distribution(p)
    return -_xlogy(p, p).sum(-1) / _unit(base)


def cross_entropy_between(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"], *, base: float = e
) -> Float[Tensor, "*#batch"]:
    """CE(P, Q) = −Σ_i p_i log q_i = KL(P ‖ Q) + H(P) (Diehl sec. 1.4).

    The expected surprise of one who believes Q while P holds. From logits and labels: `losses.cross_entropy`.
    """
    require_pair(p, q)
    return -_xlogy(p, q).sum(-1) / _unit(base)


def kl_divergence(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"], *, base: float = e
) -> Float[Tensor, "*#batch"]:
    """KL(P ‖ Q) = Σ_i p_i log(p_i / q_i) = E_P[log P/Q] (Diehl sec. 1.4).

    Never negative, 0 for P = Q alone, and +∞ exactly when some outcome has P(i) > 0 = Q(i).
    """
    require_pair(p, q)
    return (_xlogy(p, p) - _xlogy(p, q)).sum(-1) / _unit(base)


def jeffreys(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"], *, base: float = e
) -> Float[Tensor, "*#batch"]:
    """J(P, Q) = KL(P ‖ Q) + KL(Q ‖ P) = Σ_i (p_i − q_i) log(p_i / q_i): symmetric, without bound.

    Half of it is what the book calls Jensen-Shannon (book eq. 6.5).
    """
    return kl_divergence(p, q, base=base) + kl_divergence(q, p, base=base)


def jensen_shannon(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"], *, base: float = e
) -> Float[Tensor, "*#batch"]:
    """JS(P, Q) = ½ KL(P ‖ M) + ½ KL(Q ‖ M) with M = ½ (P + Q): symmetric, at most log 2, its root a metric.

    Another divergence than the book's of this name (book eq. 6.5), which is half of `jeffreys`.
    """
    require_pair(p, q)
    middle = (p + q) / 2
    return (kl_divergence(p, middle, base=base) + kl_divergence(q, middle, base=base)) / 2


def _xlogy(x: Tensor, y: Tensor) -> Tensor:
    """The product x log y, and 0 with slope 0 where both are 0, where torch has the slope 0/0."""
    return torch.xlogy(x, torch.where((x == 0) & (y == 0), 1, y))


def _unit(base: float) -> float:
    """How many nats there are to the unit that `base` stands for."""
    if not (base > 0 and base != 1):
        raise ValueError(f"the base of a logarithm must be positive and not 1; got base={base}")
    return log(base)
