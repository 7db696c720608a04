"""Conjugate gradients: solve A x = t with matrix-vector products only (Hestenes and Stiefel 1952)."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class ConjugateGradientSolution(NamedTuple):
    """The approximate solution of A x = t, and the number of products with A."""

    x: Float[Tensor, "*shape"]
    steps: int


def conjugate_gradient(
    product: Callable[[Tensor], Tensor],
    target: Float[Tensor, "*shape"],
    *,
    max_steps: int,
    tolerance: float = 1e-10,
    dim: int | None = None,
    precondition: Callable[[Tensor], Tensor] | None = None,
) -> ConjugateGradientSolution:
    """The x with A x ≈ t for a symmetric positive semidefinite A, from x = 0, p = z = P⁻¹ r and r = t.

        a = rᵀz / pᵀAp,   x ← x + a p,   r ← r − a A p,   z ← P⁻¹ r,   p ← z + (rᵀz / previous rᵀz) p

    Stops after `max_steps` products, or where ‖r‖ ≤ tolerance ‖t‖. Where A is singular but t lies in its range, x is
    the solution without a component in the null space. If `dim` is given it is the axis of the unknowns, and the other
    axes index independent systems, each with its own a. `precondition` computes P⁻¹ r; the default is P = I.
    """
    if max_steps < 1 or not tolerance > 0:
        raise ValueError(
            f"max_steps must be at least 1 and tolerance positive; got max_steps={max_steps}, tolerance={tolerance}"
        )
    x, r = torch.zeros_like(target), target.clone()
    threshold = tolerance**2 * _inner(r, r, dim)
    rz = torch.zeros_like(threshold)
    p = torch.zeros_like(r)
    for step in range(max_steps):
        active = _inner(r, r, dim) > threshold
        if not bool(active.any()):
            return ConjugateGradientSolution(x, step)
        z = r if precondition is None else precondition(r)
        previous, rz = rz, _inner(r, z, dim)
        p = z + torch.where(previous != 0, rz / previous, 0) * p
        along = product(p)
        curvature = _inner(p, along, dim)
        a = torch.where(active & (curvature != 0), rz / curvature, 0)
        x += a * p
        r -= a * along
    return ConjugateGradientSolution(x, max_steps)


def _inner(a: Tensor, b: Tensor, dim: int | None) -> Tensor:
    """aᵀb of each system, with its axis kept."""
    products = a * b
    return products.sum() if dim is None else products.sum(dim, keepdim=True)
