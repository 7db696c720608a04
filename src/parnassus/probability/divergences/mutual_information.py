"""Mutual information of two variables, from a joint table or for a normal pair (book sec. 6.1).

A joint table p(x, y) has x along its second-to-last axis and y along its last. All values are in nats; `base=2.0`
gives bits.
"""

from math import e, log

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.distributions.simplex import check_distribution
from parnassus.probability.divergences.kl_divergence import kl_divergence


def mutual_information(joint: Float[Tensor, "*batch x y"], *, base: float = e) -> Float[Tensor, "*batch"]:
    """Mutual information of x and y: 0 if and only if they are independent (book eq. 6.4).

        I(x, y) = KL(p(x, y) ‖ p(x) p(y))
                = H(x) + H(y) − H(x, y) = H(x) − H(x|y) = H(y) − H(y|x)

    Computed by the first line; the differences of the second suffer cancellation when I is small.
    """
    check_distribution(joint.flatten(-2), "joint")
    product = joint.sum(-1)[..., :, None] * joint.sum(-2)[..., None, :]
    return kl_divergence(joint.flatten(-2), product.flatten(-2), base=base)


def gaussian_mutual_information(correlation: Float[Tensor, "*shape"], *, base: float = e) -> Float[Tensor, "*shape"]:
    """I = −½ log(1 − ρ²) of a normal pair with correlation ρ (book sec. 6.1)."""
    if not bool((correlation.abs() < 1).all()):
        largest = float(correlation.abs().max())
        raise ValueError(f"a correlation must lie strictly between −1 and 1; got |ρ| = {largest:g}")
    return -torch.log1p(-correlation.square()) / (2 * log(base))
