"""Cholesky roots of kernel matrices that rounding may have made singular, and what had to be added for them."""

from math import sqrt
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

LEAST, MOST = 1e-12, 1e-4


class JitteredRoot(NamedTuple):
    """A lower triangle R and the jitter j with R Rᵀ = A + j I."""

    root: Float[Tensor, "n n"]
    jitter: float


def jittered_cholesky(matrix: Float[Tensor, "n n"], *, most: float = MOST) -> JitteredRoot:
    """The Cholesky root of a positive semi-definite A + j I with the least j of 0, 10⁻¹², 10⁻¹¹, …, `most` that serves.

    Jitters are in units of the mean of A's diagonal; the one reported is what was added. A pivot no larger than its
    own rounding, 4 √n ε max A_ii, does not serve: a factorisation that passes by luck would solve for noise.
    """
    scales = matrix.detach().diagonal()
    if not bool(scales.isfinite().all()):
        raise ValueError(
            "a kernel matrix must be finite; got NaN or ∞ on its diagonal: look at the points and the kernel"
        )
    mean, rounding = float(scales.mean()), 4 * sqrt(len(matrix)) * torch.finfo(matrix.dtype).eps
    share = 0.0
    while share <= most:
        jitter = share * mean
        shifted = matrix if share == 0 else matrix + jitter * torch.eye(len(matrix)).to(matrix)
        root, failed = torch.linalg.cholesky_ex(shifted)
        pivots = root.detach().diagonal().square()
        if not bool(failed) and bool((pivots > rounding * scales.max()).all()):
            return JitteredRoot(root, jitter)
        share = 10 * share if share else LEAST
    raise ValueError(
        f"the kernel matrix of {len(matrix)} points has no root, even with a jitter of {most:g} times its diagonal: "
        "add noise, drop points that occur twice, or compute in float64; a kernel must be positive semi-definite"
    )
