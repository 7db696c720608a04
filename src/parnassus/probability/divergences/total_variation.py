"""Metrics between finite distributions: total variation and Lᵖ distance (Diehl sec. 1.4)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.probability.distributions.simplex import check_pair


def lp_distance(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"], *, order: float
) -> Float[Tensor, "*#batch"]:
    """(Σ_i |P(i) − Q(i)|ᵒʳᵈᵉʳ)^(1/order) over the last axis, the largest |P(i) − Q(i)| for order ∞ (Diehl sec. 1.4).

    For order < 1 the triangle inequality fails, so it is not a metric.
    """
    if not order >= 1:
        raise ValueError(f"order must be at least 1, as the triangle inequality fails below; got order={order}")
    check_pair(p, q)
    distance: Tensor = torch.linalg.vector_norm(p - q, order, dim=-1)
    return distance


def total_variation(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"]
) -> Float[Tensor, "*#batch"]:
    """The largest difference in the probability of an event, half the L¹ distance (Diehl sec. 1.4).

    TV(P, Q) = max_A |P(A) − Q(A)| = ½ Σ_i |P(i) − Q(i)|
    """
    return lp_distance(p, q, order=1.0) / 2


def total_variation_event(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"]
) -> Bool[Tensor, "*#batch outcomes"]:
    """A = {i : P(i) ≥ Q(i)}, an event that attains the total variation (Diehl sec. 1.4)."""
    check_pair(p, q)
    return p >= q
