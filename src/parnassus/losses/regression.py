"""Losses for regression: powers of the residual, and Huber's between two of them (Diehl sec. 1.3)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.losses.shapes import require_alike


def mean_power_error(
    prediction: Float[Tensor, "*batch outputs"], target: Float[Tensor, "*batch outputs"], *, power: float
) -> Float[Tensor, "*batch"]:
    """1/d Σ_j |v_j − w_j|ᵖᵒʷᵉʳ over the d outputs: MAE for power 1, MSE for power 2 (Diehl sec. 1.3).

    The constant nearest to many numbers is their median for power 1 and their mean for power 2.
    """
    if not power > 0:
        raise ValueError(f"the power of a residual must be positive; got power={power}")
    require_alike(prediction, target)
    return (prediction - target).abs().pow(power).mean(-1)


def absolute_error(prediction: Float[Tensor, "*shape"], target: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """|v − w| of each number: its slope is ±1 however far off, so that outliers pull no harder (Diehl sec. 1.3)."""
    require_alike(prediction, target)
    return (prediction - target).abs()


def huber(
    prediction: Float[Tensor, "*shape"], target: Float[Tensor, "*shape"], *, border: float = 1.0
) -> Float[Tensor, "*shape"]:
    """½ r² for residuals |r| ≤ δ = `border`, and δ (|r| − ½ δ) beyond: squares near by, absolute values far off.

    Value and slope pass smoothly from one to the other (Huber 1964).
    """
    if not border > 0:
        raise ValueError(f"the border between squares and absolute values must be positive; got border={border}")
    residual = absolute_error(prediction, target)
    return torch.where(residual <= border, residual.square() / 2, border * (residual - border / 2))
