"""Conjugate gradients: solve F x = g with matrix-vector products only (Hestenes and Stiefel 1952)."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


def conjugate_gradient(
    product: Callable[[Tensor], Tensor],
    target: Float[Tensor, "*shape"],
    *,
    max_steps: int,
    tolerance: float = 1e-10,
    batch_dims: int = 0,
) -> Float[Tensor, "*shape"]:
    """The x with F x ≈ g for a symmetric positive semidefinite F, from x = 0.

    Stops after `max_steps` products, or where ‖F x − g‖ ≤ tolerance ‖g‖. Where F is singular but g lies in its range, x
    is the solution without a component in the null space. The first `batch_dims` axes index independent systems.
    """
    if max_steps < 1 or not tolerance > 0:
        raise ValueError(
            f"max_steps must be at least 1 and tolerance positive; got max_steps={max_steps}, tolerance={tolerance}"
        )
    axes = tuple(range(batch_dims, target.ndim))
    x, residual = torch.zeros_like(target), target.clone()
    direction, size = residual.clone(), residual.square().sum(axes, keepdim=True)
    threshold = tolerance**2 * size
    for _ in range(max_steps):
        active = size > threshold
        if not bool(active.any()):
            break
        along = product(direction)
        length = torch.where(active, size / (direction * along).sum(axes, keepdim=True), 0)
        x = x + length * direction
        residual = residual - length * along
        size, before = residual.square().sum(axes, keepdim=True), size
        direction = residual + torch.where(active, size / before, 0) * direction
    return x
