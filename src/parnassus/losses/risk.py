"""Error on the examples at hand, and error to expect on new ones (Diehl sec. 1.3, Zhao sec. 3)."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

PerExample: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""loss(prediction, target): a number for each example."""

Predictor: TypeAlias = Callable[[Tensor], Tensor]
"""f(x), one row of answers for each row of x."""


class Estimate(NamedTuple):
    value: float  # mean over the examples
    standard_error: float  # how far it typically lies from the expected loss


def zero_one_loss(named: Int[Tensor, " batch"], label: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """1 where the label named is wrong, else 0: the loss of a predictor that answers with a label (Diehl sec. 1.3)."""
    return (named != label).to(torch.get_default_dtype())


def empirical_risk(
    loss: PerExample, predictor: Predictor, x: Float[Tensor, "count *example"], y: Tensor
) -> Float[Tensor, ""]:
    """R_emp = 1/n Σ_i l(f(x_i), y_i): training loss on training rows, test loss on others (Zhao sec. 3)."""
    if len(x) == 0:
        raise ValueError("an average loss needs at least one example; got none")
    return loss(predictor(x), y).mean()


def held_out_risk(loss: PerExample, predictor: Predictor, x: Float[Tensor, "count *example"], y: Tensor) -> Estimate:
    """R as estimated on rows the predictor never saw, with its standard error s/√n (Zhao sec. 3).

    Unbiased for a predictor chosen without these rows; on the rows it was fitted to, or chosen by, it is too kind.
    """
    if len(x) < 2:
        raise ValueError(f"a standard error needs at least two examples; got {len(x)}")
    losses = loss(predictor(x), y).double()
    return Estimate(float(losses.mean()), float(losses.std() / len(losses) ** 0.5))


def expected_risk(
    loss: PerExample,
    predictor: Predictor,
    density: Callable[[Tensor, Tensor], Tensor],
    *,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    nodes: int = 200,
) -> Float[Tensor, ""]:
    """R = E l(f(x), y) = ∬ l(f(x), y) p(x, y) dx dy for a known law of two numbers, by quadrature (Zhao sec. 3).

    Gauss-Legendre nodes on the rectangle, which must hold all but nothing of the density p.
    """
    x, x_weights = _nodes(x_range, nodes)
    y, y_weights = _nodes(y_range, nodes)
    across, up = (each.flatten() for each in torch.meshgrid(x, y, indexing="ij"))
    weights = (x_weights[:, None] * y_weights).flatten()
    return (weights * density(across, up) * loss(predictor(across), up)).sum()


def _nodes(bounds: tuple[float, float], count: int) -> tuple[Float[Tensor, " nodes"], Float[Tensor, " nodes"]]:
    low, high = bounds
    if not low < high:
        raise ValueError(f"a range must run from low to high; got {low} … {high}")
    places, weights = (torch.from_numpy(each) for each in np.polynomial.legendre.leggauss(count))
    return (low + high) / 2 + (high - low) / 2 * places, (high - low) / 2 * weights
