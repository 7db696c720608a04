"""Empirical and expected risk of a predictor (Diehl sec. 1.3, Zhao sec. 3)."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.errors import check_same_shape

ExampleLoss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""loss(prediction, target), one value per example."""

PredictionFunction: TypeAlias = Callable[[Tensor], Tensor]
"""f(x), one row of predictions for each row of x."""


class RiskEstimate(NamedTuple):
    value: float  # mean loss over the examples
    standard_error: float  # standard error of that mean as an estimate of the expected loss


def zero_one_loss(prediction: Int[Tensor, " batch"], label: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """1 where the predicted class is wrong, else 0 (Diehl sec. 1.3)."""
    check_same_shape(prediction=prediction, label=label)
    return (prediction != label).to(torch.get_default_dtype())


def empirical_risk(
    loss: ExampleLoss, predictor: PredictionFunction, x: Float[Tensor, "count *example"], y: Tensor
) -> Float[Tensor, ""]:
    """R_emp = 1/n Σ_i l(f(x_i), y_i): the training loss or, on held-out data, the test loss (Zhao sec. 3)."""
    if len(x) == 0:
        raise ValueError("an empirical risk needs at least one example; got none")
    return loss(predictor(x), y).mean()


def held_out_risk(
    loss: ExampleLoss, predictor: PredictionFunction, x: Float[Tensor, "count *example"], y: Tensor
) -> RiskEstimate:
    """R estimated on held-out examples, with its standard error s/√n (Zhao sec. 3).

    Unbiased for a predictor chosen independently of these examples; biased downwards on those used to fit or select it.
    """
    if len(x) < 2:
        raise ValueError(f"a standard error needs at least two examples; got {len(x)}")
    losses = loss(predictor(x), y).double()
    return RiskEstimate(float(losses.mean()), float(losses.std() / len(losses) ** 0.5))


def expected_risk(
    loss: ExampleLoss,
    predictor: PredictionFunction,
    density: Callable[[Tensor, Tensor], Tensor],
    *,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    nodes: int = 200,
) -> Float[Tensor, ""]:
    """R = E l(f(x), y) = ∬ l(f(x), y) p(x, y) dx dy for a known density of scalars x and y (Zhao sec. 3).

    By Gauss-Legendre quadrature on the rectangle, which must contain almost all of the probability mass.
    """
    x, x_weights = _gauss_legendre(x_range, nodes)
    y, y_weights = _gauss_legendre(y_range, nodes)
    x_grid, y_grid = (each.flatten() for each in torch.meshgrid(x, y, indexing="ij"))
    weights = (x_weights[:, None] * y_weights).flatten()
    return (weights * density(x_grid, y_grid) * loss(predictor(x_grid), y_grid)).sum()


def _gauss_legendre(bounds: tuple[float, float], count: int) -> tuple[Float[Tensor, " nodes"], Float[Tensor, " nodes"]]:
    """Nodes and weights on an interval."""
    low, high = bounds
    if not low < high:
        raise ValueError(f"a range must have low < high; got {low} … {high}")
    nodes, weights = (torch.from_numpy(each) for each in np.polynomial.legendre.leggauss(count))
    return (low + high) / 2 + (high - low) / 2 * nodes, (high - low) / 2 * weights
