"""Derivatives of vector fields: Jacobian, exact and stochastic divergence, asymmetry of the Jacobian.

A field maps a batch to a batch of the same shape, example by example. The functions return the values of the field
too, and results are differentiable, so that losses can be built from them.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.flows.residual.jacobian_traces import jacobian_trace, unit_directions, value_and_vjp

VectorField: TypeAlias = Callable[[Tensor], Tensor]


def value_and_jacobian(
    field: VectorField, x: Float[Tensor, "batch *event"]
) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, "batch d d"]]:
    """Values s(x) and J_ij = ∂s_i/∂x_j at each example, with one backward pass per coordinate."""
    value, pull = value_and_vjp(field, x)
    return value, torch.stack([pull(direction).flatten(1) for direction in unit_directions(x)], 1)


def divergence(
    field: VectorField, x: Float[Tensor, "batch *event"]
) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
    """Values s(x) and tr ∇s(x) at each example, exactly, with d backward passes."""
    value, pull = value_and_vjp(field, x)
    return value, jacobian_trace(pull, unit_directions(x))


def hutchinson_divergence(
    field: VectorField, x: Float[Tensor, "batch *event"], probe: Float[Tensor, "batch *event"]
) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
    """Values s(x) and vᵀ ∇s(x) v, with mean tr ∇s for random v with E vvᵀ = I (Hutchinson 1990).

    One backward pass in any dimension. Random signs v have the smallest variance, from off-diagonal terms only.
    """
    value, pull = value_and_vjp(field, x)
    return value, jacobian_trace(pull, probe[None])


def jacobian_asymmetry(field: VectorField, x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
    """‖J − Jᵀ‖ / ‖J + Jᵀ‖ in Frobenius norm, 0 for gradient fields (book eq. 13.82)."""
    _, J = value_and_jacobian(field, x)
    antisymmetric, symmetric = J - J.mT, J + J.mT
    return (squared_norm(antisymmetric) / squared_norm(symmetric)).sqrt()


def squared_norm(vectors: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
    """‖v‖² of each example, of any shape."""
    return vectors.square().flatten(1).sum(1)
