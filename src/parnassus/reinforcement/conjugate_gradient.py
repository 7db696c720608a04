"""Conjugate gradients: solving F x = g with products F x alone (Hestenes and Stiefel 1952)."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


def conjugate_gradient(
    product: Callable[[Tensor], Tensor],
    target: Float[Tensor, "*shape"],
    *,
    steps: int,
    tolerance: float = 1e-10,
    apart: int = 0,
) -> Float[Tensor, "*shape"]:
    """The x with F x ≈ g for a symmetric F without negative eigenvalues, from x = 0.

    It stops after `steps` products, or where ‖F x − g‖ ≤ tolerance ‖g‖. Where F is singular but g in its range, x is
    the solution without a part that F would swallow. The first `apart` axes number systems of their own, solved
    together, each as if it were alone.
    """
    if steps < 1 or not tolerance > 0:
        raise ValueError(f"need at least one step and a positive tolerance; got steps={steps}, tolerance={tolerance}")
    axes = tuple(range(apart, target.ndim))
    x, residual = torch.zeros_like(target), target.clone()
    direction, size = residual.clone(), residual.square().sum(axes, keepdim=True)
    enough = tolerance**2 * size
    for _ in range(steps):
        going = size > enough
        if not bool(going.any()):
            break
        along = product(direction)
        length = torch.where(going, size / (direction * along).sum(axes, keepdim=True), 0)
        x = x + length * direction
        residual = residual - length * along
        size, before = residual.square().sum(axes, keepdim=True), size
        direction = residual + torch.where(going, size / before, 0) * direction
    return x
