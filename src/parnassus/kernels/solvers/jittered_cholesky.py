"""Cholesky factors of kernel matrices that are singular up to rounding, with the smallest sufficient jitter."""

from math import sqrt
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

MIN_JITTER, MAX_JITTER = 1e-12, 1e-4


class JitteredRoot(NamedTuple):
    """Lower-triangular R and the jitter j with R Rᵀ = A + j I.

    >>> JitteredRoot(root=torch.eye(2), jitter=0.0).jitter
    0.0
    """

    root: Float[Tensor, "n n"]
    jitter: float


def jittered_cholesky(matrix: Float[Tensor, "n n"], *, max_jitter: float = MAX_JITTER) -> JitteredRoot:
    """Cholesky factor of A + j I with the smallest sufficient j of 0, 10⁻¹², 10⁻¹¹, …, `max_jitter`.

    Candidates are relative to the mean of A's diagonal; the returned jitter is absolute. A factorisation is rejected if
    a pivot is at most its rounding error, 4 √n ε max A_ii, because solves with it would be dominated by rounding.
    """
    scales = matrix.detach().diagonal()
    if not bool(scales.isfinite().all()):
        raise ValueError(
            "a kernel matrix must be finite; got NaN or ∞ on its diagonal: check the points and the kernel"
        )
    mean, rounding = float(scales.mean()), 4 * sqrt(len(matrix)) * torch.finfo(matrix.dtype).eps
    relative = 0.0
    while relative <= max_jitter:
        jitter = relative * mean
        shifted = (
            matrix
            if relative == 0
            else matrix + jitter * torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
        )
        root, failed = torch.linalg.cholesky_ex(shifted)
        pivots = root.detach().diagonal().square()
        if not bool(failed) and bool((pivots > rounding * scales.max()).all()):
            return JitteredRoot(root, jitter)
        relative = 10 * relative if relative else MIN_JITTER
    raise ValueError(
        f"the kernel matrix of {len(matrix)} points is not positive definite with a jitter of {max_jitter:g} times its "
        "diagonal: add noise, drop duplicate points, or use float64; a kernel must be positive semi-definite"
    )
