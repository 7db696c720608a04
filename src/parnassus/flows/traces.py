"""Traces of Jacobians from products with a few directions: what continuous and residual flows need (book sec. 13.1).

    tr A = E Σ_d dᵀ A d   whenever   E Σ_d d dᵀ = I

The unit vectors make it exact for as many products as there are coordinates; random signs make it an estimate for one
(Hutchinson 1990). A function given here must treat the examples of a batch one by one, or their Jacobians would mix.
"""

from collections.abc import Callable
from math import sqrt
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

Directions: TypeAlias = Callable[[Tensor], Tensor]
"""A batch of examples in, directions d (count, batch, *event) with E Σ_d d dᵀ = I for each example out."""

Pullback: TypeAlias = Callable[[Tensor], Tensor]
"""A direction u for each example in, uᵀ J out, in the shape of the examples."""


def unit_directions(z: Float[Tensor, "batch *event"]) -> Float[Tensor, "size batch *event"]:
    """e_1, …, e_D, one for each coordinate of an example: Σ_d d dᵀ = I without any chance."""
    size = z[0].numel()
    rows = torch.eye(size, dtype=z.dtype, device=z.device)
    return rows.view(size, 1, *z.shape[1:]).expand(size, *z.shape)


def random_signs(z: Float[Tensor, "batch *event"], *, count: int = 1) -> Float[Tensor, "count batch *event"]:
    """Vectors of independent ±1, divided by √count so that their outer products sum to I on average.

    Of all such vectors with independent coordinates these vary least: the diagonal of A adds no variance.
    """
    if count < 1:
        raise ValueError(f"an estimate needs at least one direction; got count={count}")
    signs = torch.randint(0, 2, (count, *z.shape), device=z.device).to(z.dtype)
    return (2 * signs - 1) / sqrt(count)


def with_pullback(
    function: Callable[[Tensor], Tensor], z: Float[Tensor, "batch *event"]
) -> tuple[Float[Tensor, "batch *event"], Pullback]:
    """The value f(z), and u ↦ uᵀ J_f(z) for each example, to be applied as often as needed.

    Gradients flow through both where they are switched on; where they are off, only the products are taken.
    """
    differentiable = torch.is_grad_enabled()
    with torch.enable_grad():
        place = z if z.requires_grad else z.detach().requires_grad_()
        value = function(place)

    def pull(direction: Tensor) -> Tensor:
        if not value.requires_grad:
            return torch.zeros_like(place)  # a constant function
        (product,) = torch.autograd.grad(
            value, place, direction, retain_graph=True, create_graph=differentiable, materialize_grads=True
        )
        return product

    return value if differentiable else value.detach(), pull


def jacobian_trace(pull: Pullback, directions: Float[Tensor, "count batch *event"]) -> Float[Tensor, " batch"]:
    """Σ_d dᵀ J d for each example: the trace of J, exactly or on average as the directions have it."""
    return torch.stack([inner(pull(direction), direction) for direction in directions]).sum(0)


def inner(left: Float[Tensor, "batch *event"], right: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
    """Σ_i l_i r_i within each example."""
    return (left * right).flatten(1).sum(1)
