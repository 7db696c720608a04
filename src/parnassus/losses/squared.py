"""The squared error of a prediction, its half, and their means over the data (book sec. 1.3, Zhao sec. 3)."""

from jaxtyping import Float
from torch import Tensor

from parnassus.losses.shapes import require_alike


def squared_error(
    prediction: Float[Tensor, "batch *outputs"], target: Float[Tensor, "batch *outputs"]
) -> Float[Tensor, " batch"]:
    """‖y − f(x)‖² of each example, summed over its outputs (book sec. 1.3)."""
    require_alike(prediction, target)
    return (target - prediction).square().reshape(len(target), -1).sum(1)


def mean_squared_error(
    prediction: Float[Tensor, "batch *outputs"], target: Float[Tensor, "batch *outputs"]
) -> Float[Tensor, ""]:
    """1/N Σ_i ‖y_i − f(x_i)‖² (book eq. 1.12).

    torch's `MSELoss` divides by the number of outputs as well: this is that many times its value.
    """
    return squared_error(prediction, target).mean()


def half_squared_error(
    prediction: Float[Tensor, "batch *outputs"], target: Float[Tensor, "batch *outputs"]
) -> Float[Tensor, " batch"]:
    """½ ‖ŷ − y‖² of each example: the half makes its derivative by ŷ the plain residual ŷ − y (Zhao eq. 6)."""
    return squared_error(prediction, target) / 2


def half_mean_squared_error(
    prediction: Float[Tensor, "batch *outputs"], target: Float[Tensor, "batch *outputs"]
) -> Float[Tensor, ""]:
    """L = 1/n Σ_i ½ ‖ŷ_i − y_i‖² (Zhao eq. 7): half of what others call the mean squared error."""
    return half_squared_error(prediction, target).mean()
