"""Squared distances of all pairs of points, and the RBF (Gaussian) kernel (book sec. 15.1)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_positive


def rbf_kernel(
    x: Float[Tensor, "*batch n dim"], y: Float[Tensor, "*batch m size"] | None = None, *, length_scale: float = 1.0
) -> Float[Tensor, "*batch n m"]:
    """k(x_i, y_j) = exp(−‖x_i − y_j‖² / 2h²) for all pairs of rows, with length scale h; y defaults to x."""
    check_positive(length_scale=length_scale)
    return rbf_of_squared_distances(squared_distances(x, y) / length_scale**2)


def rbf_of_squared_distances(squared: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """exp(−½ d²), from squared distances d² in units of the length scale."""
    return torch.exp(-squared / 2)


def squared_distances(
    x: Float[Tensor, "*batch n dim"], y: Float[Tensor, "*batch m size"] | None = None
) -> Float[Tensor, "*batch n m"]:
    """‖x_i − y_j‖² = ‖x_i‖² + ‖y_j‖² − 2 x_iᵀy_j, centred at the mean of x to limit cancellation; y defaults to x.

    Its gradient is finite where two rows are equal; that of a square root would be infinite.
    """
    y = second_points(x, y)
    centre = x.detach().mean(-2, keepdim=True)
    left, right = x - centre, y - centre
    squares = left.square().sum(-1)[..., :, None] + right.square().sum(-1)[..., None, :] - 2 * left @ right.mT
    return squares.clamp(min=0)


def second_points(
    x: Float[Tensor, "*batch n dim"], y: Float[Tensor, "*batch m size"] | None
) -> Float[Tensor, "*batch m_or_n dim"]:
    """The points y, or x where y is None; a ValueError if their numbers of features differ."""
    if y is None:
        return x
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"x and y must have the same number of features; got {x.shape[-1]} and {y.shape[-1]}")
    return y
