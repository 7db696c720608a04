"""Robust regression: absolute and Huber error by iteratively reweighted least squares (Zhao sec. 3).

With the squared error the influence of a point is proportional to its residual. An error ρ(r) that grows no faster than
|r| is minimised by repeated least squares with weights ρ'(r)/r from the residuals of the previous fit.
"""

from collections.abc import Callable
from typing import TypeAlias

from jaxtyping import Float
from torch import Tensor

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_positive
from parnassus.layers.linear_models.linear_regression import (
    LinearRegression,
    append_ones,
    least_squares,
    linear_model,
    minimum_norm_solution,
)

Weighting: TypeAlias = Callable[[Tensor], Tensor]
"""ρ'(r)/r as a function of the residuals r."""


def absolute_error_weights(residual: Float[Tensor, " batch"], *, floor: float = 1e-8) -> Float[Tensor, " batch"]:
    """Weights 1/|r| of ρ(r) = |r|, with |r| clamped from below at `floor`."""
    return 1 / residual.abs().clamp(min=floor)


def huber_weights(residual: Float[Tensor, " batch"], *, delta: float = 1.0) -> Float[Tensor, " batch"]:
    """Weights min(1, δ/|r|) of the Huber loss."""
    check_positive(delta=delta)
    return delta / residual.abs().clamp(min=delta)


@accepts_arrays
def weighted_least_squares(
    x: Float[Tensor, "batch features"], y: Float[Tensor, " batch"], weights: Float[Tensor, " batch"]
) -> LinearRegression:
    """The (w, b) that minimise Σ_i c_i (wᵀx_i + b − y_i)² for weights c_i ≥ 0."""
    if not bool((weights >= 0).all()):
        raise ValueError(f"weights must not be negative; got a minimum of {float(weights.min())}")
    root = weights.sqrt()
    solution = minimum_norm_solution(root[:, None] * append_ones(x), root * y)
    return LinearRegression(solution[:-1], solution[-1])


@accepts_arrays
def iteratively_reweighted_least_squares(
    x: Float[Tensor, "batch features"], y: Float[Tensor, " batch"], weighting: Weighting, *, steps: int = 100
) -> LinearRegression:
    """Minimise Σ_i ρ(wᵀx_i + b − y_i), starting from the least-squares fit, with `weighting` = ρ'(r)/r.

    No step increases the error, because ρ lies below the parabola tangent to it at the last residual.
    """
    model = LinearRegression(*least_squares(x, y))
    for _ in range(steps):
        model = weighted_least_squares(x, y, weighting(y - linear_model(x, model.w, model.b)))
    return model
