"""Expectation, variance and covariance: exact, by quadrature and by Monte Carlo sampling (Zhao sec. 2).

E[f(X)] is `expectation(f(x), p)`: apply f to the values first. The notes contain only the heading.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.distributions.simplex import check_distribution

Function: TypeAlias = Callable[[Tensor], Tensor]
"""An elementwise function of a tensor."""


def expectation(values: Float[Tensor, " values *event"], p: Float[Tensor, " outcomes"]) -> Float[Tensor, "*event"]:
    """E[X] = Σ_x x p(x), with values along the first axis (Zhao sec. 2)."""
    check_distribution(p)
    if len(values) != len(p):
        raise ValueError(
            f"values must have one entry per probability; got {len(values)} values, {len(p)} probabilities"
        )
    mean: Tensor = torch.tensordot(p, values, dims=1)
    return mean


def variance(values: Float[Tensor, " values *event"], p: Float[Tensor, " outcomes"]) -> Float[Tensor, "*event"]:
    """Var X = E[(X − E X)²] = E[X²] − E[X]², by the first form, which avoids cancellation (Zhao sec. 2)."""
    return expectation((values - expectation(values, p)).square(), p)


def covariance(values: Float[Tensor, "values dim"], p: Float[Tensor, " outcomes"]) -> Float[Tensor, "dim dim"]:
    """Σ = E[(X − E X)(X − E X)ᵀ], so that vᵀ Σ v = Var(vᵀ X) (Zhao sec. 2)."""
    centred = values - expectation(values, p)
    return expectation(centred[:, :, None] * centred[:, None, :], p)


def expectation_by_quadrature(
    function: Function, density: Function, *, low: float, high: float, points: int = 10_001
) -> Float[Tensor, ""]:
    """E[f(X)] = ∫ f(x) p(x) dx over [low, high], by the trapezoidal rule in float64 (Zhao sec. 2).

    For smooth densities that vanish at both ends the rule is accurate to rounding error.
    """
    if not (low < high and points >= 2):
        raise ValueError(f"need low < high and at least 2 points; got low={low}, high={high}, points={points}")
    x = torch.linspace(low, high, points, dtype=torch.float64)
    return torch.trapezoid(function(x) * density(x), x)


class MonteCarloEstimate(NamedTuple):
    """A Monte Carlo mean and its standard error.

    >>> MonteCarloEstimate(mean=torch.tensor(0.5), standard_error=torch.tensor(0.01)).mean.item()
    0.5
    """

    mean: Tensor
    standard_error: Tensor


def expectation_by_sampling(function: Function, draws: Float[Tensor, "draws *event"]) -> MonteCarloEstimate:
    """E[f(X)] ≈ 1/n Σ_i f(x_i) over samples of X; the error decreases as 1/√n (Zhao sec. 2)."""
    if len(draws) < 2:
        raise ValueError(f"a standard error needs at least two draws; got {len(draws)}")
    values = function(draws)
    return MonteCarloEstimate(values.mean(0), values.std(0) / len(draws) ** 0.5)
