"""Entropy, joint and conditional entropy, and cross-entropy of finite distributions (Diehl sec. 1.4; book sec. 6.1).

All values are in nats; `base=2.0` gives bits. A joint table p(x, y) has x along its second-to-last axis and y along its
last; `joint.mT` exchanges the two. By convention 0 log 0 = 0.
"""

from math import e, log

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.probability.distributions.simplex import check_distribution, check_pair


def entropy(p: Float[Tensor, "*batch outcomes"], *, base: float = e) -> Float[Tensor, "*batch"]:
    """H(P) = −Σ_i p_i log p_i ≥ 0, the expected negative log-probability (Diehl sec. 1.4)."""
    check_distribution(p)
    return -xlogy(p, p).sum(-1) / nats_per_unit(base)


def cross_entropy_between(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"], *, base: float = e
) -> Float[Tensor, "*#batch"]:
    """CE(P, Q) = −Σ_i p_i log q_i = KL(P ‖ Q) + H(P) (Diehl sec. 1.4).

    The expected negative log-probability under Q of outcomes drawn from P. From logits and labels:
    `losses.cross_entropy`.
    """
    check_pair(p, q)
    return -xlogy(p, q).sum(-1) / nats_per_unit(base)


def joint_entropy(joint: Float[Tensor, "*batch x y"], *, base: float = e) -> Float[Tensor, "*batch"]:
    """H(x, y) = −Σ_{i,j} p(x_i, y_j) log p(x_i, y_j) (book eq. 6.2)."""
    return entropy(joint.flatten(-2), base=base)


def conditional_entropy(joint: Float[Tensor, "*batch x y"], *, base: float = e) -> Float[Tensor, "*batch"]:
    """Entropy of x given y: at most H(x), and 0 where x is a function of y (book eq. 6.3).

        H(x|y) = −Σ_{i,j} p(x_i, y_j) log p(x_i|y_j) = H(x, y) − H(y)

    Computed as the mean over y of the entropy of p(x|y), which avoids cancellation.
    """
    check_distribution(joint.flatten(-2), "joint")
    y = joint.sum(-2)
    conditional = joint / torch.where(y > 0, y, 1)[..., None, :]
    conditional = torch.where(y[..., None, :] > 0, conditional, 1 / joint.shape[-2])  # arbitrary where p(y) = 0
    return (y * entropy(conditional.mT, base=base)).sum(-1)


def plug_in_entropy(counts: Int[Tensor, "*batch outcomes"], *, base: float = e) -> Float[Tensor, "*batch"]:
    """The entropy of the empirical frequencies n_i/n, biased downwards (book sec. 6.1).

    By Jensen's inequality, as H is concave, E[Ĥ] ≤ H, and E[Ĥ] − H ≈ −(m − 1)/(2n) nats for m possible outcomes.
    """
    return entropy(_frequencies(counts), base=base)


def corrected_entropy(counts: Int[Tensor, "*batch outcomes"], *, base: float = e) -> Float[Tensor, "*batch"]:
    """The plug-in entropy plus the bias correction (m − 1)/(2n), m observed outcomes (Miller 1955)."""
    observed, total = (counts > 0).sum(-1), counts.sum(-1)
    return plug_in_entropy(counts, base=base) + (observed - 1) / (2 * total) / log(base)


def xlogy(x: Tensor, y: Tensor) -> Tensor:
    """The product x log y, and 0 with gradient 0 where both are 0, where the gradient of torch.xlogy is NaN."""
    return torch.xlogy(x, torch.where((x == 0) & (y == 0), 1, y))


def nats_per_unit(base: float) -> float:
    """The number of nats per unit of information for logarithms to this base."""
    if not (base > 0 and base != 1):
        raise ValueError(f"the base of a logarithm must be positive and not 1; got base={base}")
    return log(base)


def _frequencies(counts: Tensor) -> Tensor:
    if counts.shape[-1] == 0 or not bool((counts >= 0).all()):
        raise ValueError("counts must be non-negative, with at least one outcome")
    total = counts.sum(-1, keepdim=True)
    if not bool((total > 0).all()):
        raise ValueError("each row of counts must have a positive sum; some row is all zero")
    return counts.double() / total
