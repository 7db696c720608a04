"""Lines that one bad point cannot drag away: absolute and Huber error by reweighted least squares (Zhao sec. 3).

The squared error weighs a point by its residual, so one far point outweighs many near ones. An error ρ(r) that grows
no faster than |r| is minimised by least squares with weights ρ'(r)/r, taken anew from the residuals of the last fit.
"""

from collections.abc import Callable
from typing import TypeAlias

from jaxtyping import Float
from torch import Tensor

from parnassus.layers.linear_regression import (
    LinearRegression,
    least_squares,
    linear_model,
    shortest_solution,
    with_ones,
)

Weighting: TypeAlias = Callable[[Tensor], Tensor]
"""ρ'(r)/r of the residuals r."""


def absolute_weights(residual: Float[Tensor, " batch"], *, floor: float = 1e-8) -> Float[Tensor, " batch"]:
    """1/|r| of ρ(r) = |r|; below the floor, where the line meets the point, it is held."""
    return 1 / residual.abs().clamp(min=floor)


def huber_weights(residual: Float[Tensor, " batch"], *, border: float = 1.0) -> Float[Tensor, " batch"]:
    """min(1, δ/|r|) of Huber's ρ, which is ½r² up to δ = `border` and goes on straight."""
    if not border > 0:
        raise ValueError(f"the border between squares and absolute values must be positive; got border={border}")
    return border / residual.abs().clamp(min=border)


def weighted_least_squares(
    x: Float[Tensor, "batch features"], y: Float[Tensor, " batch"], weights: Float[Tensor, " batch"]
) -> LinearRegression:
    """The (w, b) that minimise Σ_i c_i (wᵀx_i + b − y_i)² for weights c_i ≥ 0."""
    if not bool((weights >= 0).all()):
        raise ValueError(f"weights must not be negative; the least is {float(weights.min())}")
    root = weights.sqrt()
    solution = shortest_solution(root[:, None] * with_ones(x), root * y)
    return LinearRegression(solution[:-1], solution[-1])


def reweighted_least_squares(
    x: Float[Tensor, "batch features"], y: Float[Tensor, " batch"], weighting: Weighting, *, steps: int = 100
) -> LinearRegression:
    """Minimises Σ_i ρ(wᵀx_i + b − y_i) from the least-squares fit on, `weighting` being ρ'(r)/r.

    Every step lowers the error, because ρ lies below the parabola that touches it at the last residual.
    """
    model = LinearRegression(*least_squares(x, y))
    for _ in range(steps):
        model = weighted_least_squares(x, y, weighting(y - linear_model(x, model.w, model.b)))
    return model
