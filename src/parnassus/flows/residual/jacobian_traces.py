"""Traces of Jacobians by vector-Jacobian products, for continuous and residual flows (book sec. 13.1).

    tr A = E Σ_d dᵀ A d   whenever   E Σ_d d dᵀ = I

Unit vectors give the exact trace with one product per coordinate; random signs give an unbiased estimate with one
product (Hutchinson 1990). Functions passed here must act on every example of a batch independently.
"""

from collections.abc import Callable
from math import sqrt
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_at_least_one

Directions: TypeAlias = Callable[[Tensor], Tensor]
"""Maps a batch of examples to directions d (count, batch, *event) with E Σ_d d dᵀ = I for each example."""

VJP: TypeAlias = Callable[[Tensor], Tensor]
"""Maps a vector u per example to the vector-Jacobian products uᵀ J, in the shape of the examples."""


def unit_directions(z: Float[Tensor, "batch *event"]) -> Float[Tensor, "size batch *event"]:
    """e_1, …, e_D, one per coordinate of an example: Σ_d d dᵀ = I exactly."""
    size = z[0].numel()
    rows = torch.eye(size, dtype=z.dtype, device=z.device)
    return rows.view(size, 1, *z.shape[1:]).expand(size, *z.shape)


def rademacher_directions(z: Float[Tensor, "batch *event"], *, count: int = 1) -> Float[Tensor, "count batch *event"]:
    """Vectors of independent random signs (Rademacher variables), divided by √count.

    Among vectors with independent coordinates these have the smallest variance: the diagonal of A contributes none.
    """
    check_at_least_one(count=count)
    signs = torch.randint(0, 2, (count, *z.shape), device=z.device).to(z.dtype)
    return (2 * signs - 1) / sqrt(count)


def value_and_vjp(
    function: Callable[[Tensor], Tensor], z: Float[Tensor, "batch *event"]
) -> tuple[Float[Tensor, "batch *event"], VJP]:
    """The value f(z) and the function u ↦ uᵀ J_f(z), which can be applied repeatedly.

    Both are differentiable if gradients are enabled.
    """
    differentiable = torch.is_grad_enabled()
    with torch.enable_grad():
        input_ = z if z.requires_grad else z.detach().requires_grad_()
        value = function(input_)

    def vjp(direction: Tensor) -> Tensor:
        if not value.requires_grad:
            return torch.zeros_like(input_)  # a constant function
        (product,) = torch.autograd.grad(
            value, input_, direction, retain_graph=True, create_graph=differentiable, materialize_grads=True
        )
        return product

    return value if differentiable else value.detach(), vjp


def jacobian_trace(vjp: VJP, directions: Float[Tensor, "count batch *event"]) -> Float[Tensor, " batch"]:
    """Σ_d dᵀ J d for each example: the trace of J, exact or estimated depending on the directions."""
    return torch.stack([inner_product(vjp(direction), direction) for direction in directions]).sum(0)


def inner_product(left: Float[Tensor, "batch *event"], right: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
    """Σ_i l_i r_i for each example."""
    return (left * right).flatten(1).sum(1)
