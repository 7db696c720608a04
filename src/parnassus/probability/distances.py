"""Distances of two distributions that are metrics: Lᵖ and total variation (Diehl sec. 1.4)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.probability.simplex import require_pair


def lp_distance(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"], *, order: float
) -> Float[Tensor, "*#batch"]:
    """(Σ_i |P(i) − Q(i)|ᵒʳᵈᵉʳ)^(1/order) over the last axis, the largest |P(i) − Q(i)| for order ∞ (Diehl sec. 1.4).

    Below order 1 the triangle inequality fails, so that it would not be a distance.
    """
    if not order >= 1:
        raise ValueError(f"an Lᵖ distance needs order ≥ 1: below, the triangle inequality fails; got order={order}")
    require_pair(p, q)
    distance: Tensor = torch.linalg.vector_norm(p - q, order, dim=-1)
    return distance


def total_variation(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"]
) -> Float[Tensor, "*#batch"]:
    """The largest disagreement about an event, which is half the L¹ distance (Diehl sec. 1.4).

    TV(P, Q) = max_A |P(A) − Q(A)| = ½ Σ_i |P(i) − Q(i)|
    """
    return lp_distance(p, q, order=1.0) / 2


def most_telling_event(
    p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"]
) -> Bool[Tensor, "*#batch outcomes"]:
    """A = {i : P(i) ≥ Q(i)}, an event about which P and Q disagree by their total variation (Diehl sec. 1.4)."""
    require_pair(p, q)
    return p >= q
