"""Conditional entropy and mutual information of two variables, exactly and from counts (book sec. 6.1).

A joint table p(x, y) has x along its last axis but one and y along its last; `joint.mT` exchanges the two. Numbers are
nats; `base=2.0` gives bits.
"""

from math import e, log

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.probability.divergences import entropy, kl_divergence
from parnassus.probability.simplex import require_distribution


def joint_entropy(joint: Float[Tensor, "*batch x y"], *, base: float = e) -> Float[Tensor, "*batch"]:
    """H(x, y) = −Σ_{i,j} p(x_i, y_j) log p(x_i, y_j) (book eq. 6.2)."""
    return entropy(joint.flatten(-2), base=base)


def conditional_entropy(joint: Float[Tensor, "*batch x y"], *, base: float = e) -> Float[Tensor, "*batch"]:
    """What stays uncertain of x once y is known, at most H(x) and 0 where y decides x (book eq. 6.3).

        H(x|y) = −Σ_{i,j} p(x_i, y_j) log p(x_i|y_j) = H(x, y) − H(y)

    Computed as the mean over y of the entropy of p(x|y), which nothing cancels in.
    """
    require_distribution(joint.flatten(-2), "joint")
    y = joint.sum(-2)
    given = joint / torch.where(y > 0, y, 1)[..., None, :]
    given = torch.where(y[..., None, :] > 0, given, 1 / joint.shape[-2])  # any law will do: its weight is 0
    return (y * entropy(given.mT, base=base)).sum(-1)


def mutual_information(joint: Float[Tensor, "*batch x y"], *, base: float = e) -> Float[Tensor, "*batch"]:
    """What x and y tell of one another: 0 exactly when they are independent (book eq. 6.4).

        I(x, y) = KL(p(x, y) ‖ p(x) p(y))
                = H(x) + H(y) − H(x, y) = H(x) − H(x|y) = H(y) − H(y|x)

    Computed by the first line; the differences of the second cancel when little is told.
    """
    require_distribution(joint.flatten(-2), "joint")
    apart = joint.sum(-1)[..., :, None] * joint.sum(-2)[..., None, :]
    return kl_divergence(joint.flatten(-2), apart.flatten(-2), base=base)


def gaussian_mutual_information(correlation: Float[Tensor, "*shape"], *, base: float = e) -> Float[Tensor, "*shape"]:
    """I = −½ log(1 − ρ²) of a normal pair with correlation ρ (book sec. 6.1)."""
    if not bool((correlation.abs() < 1).all()):
        worst = float(correlation.abs().max())
        raise ValueError(f"a correlation must lie strictly between −1 and 1; got |ρ| = {worst:g}")
    return -torch.log1p(-correlation.square()) / (2 * log(base))


def plug_in_entropy(counts: Int[Tensor, "*batch outcomes"], *, base: float = e) -> Float[Tensor, "*batch"]:
    """The entropy of the frequencies n_i/n in place of the unknown law; too low on average (book sec. 6.1).

    By Jensen's inequality, since H is concave: E[Ĥ] ≤ H, and E[Ĥ] − H ≈ −(m − 1)/(2n) nats for m possible outcomes.
    """
    return entropy(_frequencies(counts), base=base)


def corrected_entropy(counts: Int[Tensor, "*batch outcomes"], *, base: float = e) -> Float[Tensor, "*batch"]:
    """The plug-in entropy plus (m − 1)/(2n) for the m outcomes that were seen (Miller 1955)."""
    seen, total = (counts > 0).sum(-1), counts.sum(-1)
    return plug_in_entropy(counts, base=base) + (seen - 1) / (2 * total) / log(base)


def _frequencies(counts: Tensor) -> Tensor:
    if counts.shape[-1] == 0 or not bool((counts >= 0).all()):
        raise ValueError("counts must not be negative, and there must be at least one outcome")
    total = counts.sum(-1, keepdim=True)
    if not bool((total > 0).all()):
        raise ValueError("frequencies need at least one draw; some row of counts is all zero")
    return counts.double() / total
