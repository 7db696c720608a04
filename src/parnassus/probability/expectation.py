"""Expectations of tables, of densities and of samples, and the variances that follow (Zhao sec. 2).

The notes have only the heading. E[f(X)] is `expectation(f(x), p)` and so on: apply f to the values first.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.simplex import require_distribution

Function: TypeAlias = Callable[[Tensor], Tensor]
"""Values in, values out, elementwise."""


def expectation(values: Float[Tensor, " values *event"], p: Float[Tensor, " outcomes"]) -> Float[Tensor, "*event"]:
    """E[X] = Σ_x x p(x), values along the first axis (Zhao sec. 2)."""
    require_distribution(p)
    if len(values) != len(p):
        raise ValueError(f"need a value for every probability; got {len(values)} values, {len(p)} probabilities")
    mean: Tensor = torch.tensordot(p, values, dims=1)
    return mean


def variance(values: Float[Tensor, " values *event"], p: Float[Tensor, " outcomes"]) -> Float[Tensor, "*event"]:
    """Var X = E[(X − E X)²] = E[X²] − E[X]²; the first form, which does not cancel (Zhao sec. 2)."""
    return expectation((values - expectation(values, p)).square(), p)


def covariance(values: Float[Tensor, "values dim"], p: Float[Tensor, " outcomes"]) -> Float[Tensor, "dim dim"]:
    """Σ = E[(X − E X)(X − E X)ᵀ], so that vᵀ Σ v = Var(vᵀ X) (Zhao sec. 2)."""
    centred = values - expectation(values, p)
    return expectation(centred[:, :, None] * centred[:, None, :], p)


def expectation_by_quadrature(
    function: Function, density: Function, *, low: float, high: float, points: int = 10_001
) -> Float[Tensor, ""]:
    """E[f(X)] = ∫ f(x) p(x) dx over [low, high], by the trapezium rule in float64 (Zhao sec. 2).

    For smooth densities that have died out at both ends the rule is accurate to rounding.
    """
    if not (low < high and points >= 2):
        raise ValueError(f"need low < high and at least 2 points; got low={low}, high={high}, points={points}")
    x = torch.linspace(low, high, points, dtype=torch.float64)
    return torch.trapezoid(function(x) * density(x), x)


class Estimate(NamedTuple):
    """A mean over draws, and the standard error it has."""

    mean: Tensor
    error: Tensor


def expectation_by_sampling(function: Function, draws: Float[Tensor, "draws *event"]) -> Estimate:
    """E[f(X)] ≈ 1/n Σ_i f(x_i) over draws of X; its error falls as 1/√n (Zhao sec. 2)."""
    if len(draws) < 2:
        raise ValueError(f"a standard error needs at least two draws; got {len(draws)}")
    values = function(draws)
    return Estimate(values.mean(0), values.std(0) / len(draws) ** 0.5)
