"""Losses for regression: squared, absolute, power and Huber errors (book sec. 1.3, Diehl sec. 1.3, Zhao sec. 3)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_positive, check_same_shape


def squared_error(
    prediction: Float[Tensor, "batch *outputs"], target: Float[Tensor, "batch *outputs"]
) -> Float[Tensor, " batch"]:
    """‖y − f(x)‖² of each example, summed over its outputs (book sec. 1.3)."""
    check_prediction(prediction, target)
    return (target - prediction).square().reshape(len(target), -1).sum(1)


def mean_squared_error(
    prediction: Float[Tensor, "batch *outputs"], target: Float[Tensor, "batch *outputs"]
) -> Float[Tensor, ""]:
    """1/N Σ_i ‖y_i − f(x_i)‖² (book eq. 1.12).

    torch's `MSELoss` also averages over the outputs; this value is larger by a factor of the number of outputs.
    """
    return squared_error(prediction, target).mean()


def half_squared_error(
    prediction: Float[Tensor, "batch *outputs"], target: Float[Tensor, "batch *outputs"]
) -> Float[Tensor, " batch"]:
    """½ ‖ŷ − y‖² of each example, whose gradient with respect to ŷ is the residual ŷ − y (Zhao eq. 6)."""
    return squared_error(prediction, target) / 2


def half_mean_squared_error(
    prediction: Float[Tensor, "batch *outputs"], target: Float[Tensor, "batch *outputs"]
) -> Float[Tensor, ""]:
    """L = 1/n Σ_i ½ ‖ŷ_i − y_i‖², half of `mean_squared_error` (Zhao eq. 7)."""
    return half_squared_error(prediction, target).mean()


def mean_power_error(
    prediction: Float[Tensor, "*batch outputs"], target: Float[Tensor, "*batch outputs"], *, power: float
) -> Float[Tensor, "*batch"]:
    """1/d Σ_j |v_j − w_j|ᵖᵒʷᵉʳ over the d outputs: MAE for power 1, MSE for power 2 (Diehl sec. 1.3).

    The constant that minimises it is the median of the targets for power 1 and their mean for power 2.
    """
    check_positive(power=power)
    check_prediction(prediction, target)
    return (prediction - target).abs().pow(power).mean(-1)


def absolute_error(prediction: Float[Tensor, "*shape"], target: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """|v − w| elementwise; its gradient is ±1, so the influence of an outlier is bounded (Diehl sec. 1.3)."""
    check_prediction(prediction, target)
    return (prediction - target).abs()


def huber_loss(
    prediction: Float[Tensor, "*shape"], target: Float[Tensor, "*shape"], *, delta: float = 1.0
) -> Float[Tensor, "*shape"]:
    """Huber loss: ½ r² for residuals |r| ≤ δ, and δ (|r| − ½ δ) beyond (Huber 1964).

    The loss and its derivative are continuous at |r| = δ.
    """
    check_positive(delta=delta)
    residual = absolute_error(prediction, target)
    return torch.where(residual <= delta, residual.square() / 2, delta * (residual - delta / 2))


def check_prediction(prediction: Tensor, target: Tensor) -> None:
    """Raise a ValueError unless prediction and target have one shape and at least one example."""
    check_same_shape(prediction=prediction, target=target)
    if prediction.numel() == 0:
        raise ValueError(f"a loss needs at least one example; got shape {(*prediction.shape,)}")
