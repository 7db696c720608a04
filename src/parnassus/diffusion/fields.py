"""Vector fields and their derivatives: Jacobian, divergence exact and probed, and what makes a field a gradient.

A field maps a batch to a batch of the same shape, example by example. All functions return the field's values too,
and where gradients are on they flow through what is returned, so that a loss may be built on it.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.flows.traces import jacobian_trace, unit_directions, with_pullback

Field: TypeAlias = Callable[[Tensor], Tensor]


def jacobian(
    field: Field, x: Float[Tensor, "batch *event"]
) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, "batch d d"]]:
    """Values s(x) and J_ij = ∂s_i/∂x_j at each example, by one backward pass a coordinate."""
    value, pull = with_pullback(field, x)
    return value, torch.stack([pull(direction).flatten(1) for direction in unit_directions(x)], 1)


def divergence(
    field: Field, x: Float[Tensor, "batch *event"]
) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
    """Values s(x) and tr ∇s(x) at each example, exact: d backward passes, so for few dimensions."""
    value, pull = with_pullback(field, x)
    return value, jacobian_trace(pull, unit_directions(x))


def probed_divergence(
    field: Field, x: Float[Tensor, "batch *event"], probe: Float[Tensor, "batch *event"]
) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
    """Values s(x) and vᵀ ∇s(x) v, whose mean is tr ∇s for random v with E vvᵀ = I (Hutchinson 1990).

    One backward pass in any dimension. Signs ±1 vary least: of them only off-diagonal terms are left to chance.
    """
    value, pull = with_pullback(field, x)
    return value, jacobian_trace(pull, probe[None])


def asymmetry(field: Field, x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
    """‖J − Jᵀ‖ / ‖J + Jᵀ‖ in Frobenius' norm: 0 for a gradient, which has no curl (book eq. 13.82)."""
    _, slopes = jacobian(field, x)
    curl, rest = slopes - slopes.mT, slopes + slopes.mT
    return (squared_length(curl) / squared_length(rest)).sqrt()


def squared_length(vectors: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
    """‖v‖² of each example, whatever its shape."""
    return vectors.square().flatten(1).sum(1)
