"""Radial kernels: similarity as a function of distance (Zhao sec. 11, book sec. 10.1.3).

Each is a function of u = ‖(q − k)/h‖ ≥ 0 with bandwidth h. Constant factors cancel in normalised weights.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_positive
from parnassus.probability import rbf_of_squared_distances

RadialKernel: TypeAlias = Callable[[Tensor], Tensor]
"""kernel(u): the similarity of points at distance u, in units of the bandwidth."""

Bandwidth: TypeAlias = float | Float[Tensor, " _features"]
"""One bandwidth h for all coordinates, or one per coordinate."""


def gaussian_kernel(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """exp(−½ u²), positive everywhere (Zhao sec. 11)."""
    return rbf_of_squared_distances(u.square())


def boxcar_kernel(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 if u ≤ 1, else 0 (Zhao sec. 11, which does not print the 0)."""
    return (u <= 1).to(u.dtype)


def triangular_kernel(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """max(0, 1 − u), which (Zhao sec. 11) calls the Epanechnikov kernel."""
    return (1 - u).clamp(min=0)


def epanechnikov_kernel(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """¾ max(0, 1 − u²), optimal in mean squared error in one dimension (Epanechnikov 1969)."""
    return 0.75 * (1 - u.square()).clamp(min=0)


def constant_kernel(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 at any distance: the prediction is the mean."""
    return torch.ones_like(u)


def distances(
    query: Float[Tensor, "*batch queries features"],
    key: Float[Tensor, "*batch keys features"],
    bandwidth: Bandwidth = 1.0,
) -> Float[Tensor, "*batch queries keys"]:
    """The distances u = ‖(q − k)/h‖ of every query and key, accurate also for nearly equal points."""
    _check_bandwidth(bandwidth, key.shape[-1])
    return torch.cdist(query / bandwidth, key / bandwidth, compute_mode="donot_use_mm_for_euclid_dist")


def similarity(
    query: Float[Tensor, "*batch queries features"],
    key: Float[Tensor, "*batch keys features"],
    *,
    kernel: RadialKernel = gaussian_kernel,
    bandwidth: Bandwidth = 1.0,
) -> Float[Tensor, "*batch queries keys"]:
    """α(q, k) = K(‖(q − k)/h‖) for every query and key (Zhao sec. 11)."""
    return kernel(distances(query, key, bandwidth))


def _check_bandwidth(bandwidth: Bandwidth, features: int) -> None:
    if not isinstance(bandwidth, Tensor):
        check_positive(bandwidth=bandwidth)
        return
    if bandwidth.shape != (features,):
        raise ValueError(f"bandwidth must have one entry per feature ({features}); got shape {tuple(bandwidth.shape)}")
    if not bool((bandwidth > 0).all()):
        raise ValueError(f"bandwidths must be positive; got a minimum of {float(bandwidth.min()):g}")
