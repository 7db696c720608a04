"""Kernels: how similar two points are, by their distance alone (Zhao sec. 11, book sec. 10.1.3).

Each is a function of u = ‖(q − k)/h‖ ≥ 0. Constant factors do not matter where weights are divided by their sum.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

Kernel: TypeAlias = Callable[[Tensor], Tensor]
"""kernel(u): the similarity of points at the distance u, in widths."""

Width: TypeAlias = float | Float[Tensor, " _features"]
"""One width h for all coordinates, or one for each."""


def gaussian(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """exp(−½ u²): every pair has a weight (Zhao sec. 11)."""
    return (-u.square() / 2).exp()


def boxcar(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 if u ≤ 1, else 0: all neighbours count alike (Zhao sec. 11, where the 0 is not printed)."""
    return (u <= 1).to(u.dtype)


def triangular(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """max(0, 1 − u), which (Zhao sec. 11) calls Epanechnikov's."""
    return (1 - u).clamp(min=0)


def epanechnikov(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """¾ max(0, 1 − u²), of all kernels the one with the least error on a line (Epanechnikov 1969)."""
    return 0.75 * (1 - u.square()).clamp(min=0)


def constant(u: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 at any distance: everything counts, and the answer is the mean."""
    return torch.ones_like(u)


def distances(
    query: Float[Tensor, "*batch queries features"], key: Float[Tensor, "*batch keys features"], width: Width = 1.0
) -> Float[Tensor, "*batch queries keys"]:
    """The distances u = ‖(q − k)/h‖ of every query and key, exact also where they nearly coincide."""
    _require_width(width, key.shape[-1])
    return torch.cdist(query / width, key / width, compute_mode="donot_use_mm_for_euclid_dist")


def similarity(
    query: Float[Tensor, "*batch queries features"],
    key: Float[Tensor, "*batch keys features"],
    *,
    kernel: Kernel = gaussian,
    width: Width = 1.0,
) -> Float[Tensor, "*batch queries keys"]:
    """α(q, k) = K(‖(q − k)/h‖) for every query and key (Zhao sec. 11)."""
    return kernel(distances(query, key, width))


def _require_width(width: Width, features: int) -> None:
    if not isinstance(width, Tensor):
        if not width > 0:
            raise ValueError(f"a kernel's width must be positive; got width={width}")
        return
    if width.shape != (features,):
        raise ValueError(f"widths must be one number, or one for each of {features} features; got {tuple(width.shape)}")
    if not bool((width > 0).all()):
        raise ValueError(f"a kernel's widths must be positive; the least is {float(width.min()):g}")
