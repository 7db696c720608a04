"""Conditional distribution of a Gaussian vector given some of its coordinates (Diehl ex. 5.6)."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.distributions.gaussian import Gaussian, cholesky_root, is_numerically_positive, symmetrise

CovarianceSolver: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""A function that maps a covariance Σ and right-hand sides B as columns to some S with Σ S = B."""


def solve_by_cholesky(
    covariance: Float[Tensor, "*#batch dim dim"], right: Float[Tensor, "*#batch dim columns"]
) -> Float[Tensor, "*#batch dim columns"]:
    """Σ⁻¹ B by Σ = L Lᵀ: fast, for positive definite Σ."""
    solution: Tensor = torch.cholesky_solve(right, cholesky_root(covariance))
    return solution


def solve_by_pseudo_inverse(
    covariance: Float[Tensor, "*#batch dim dim"], right: Float[Tensor, "*#batch dim columns"]
) -> Float[Tensor, "*#batch dim columns"]:
    """Σ⁺ B, for any positive semi-definite Σ; the columns of B must lie in the range of Σ.

    Σ⁺ = Σ_i v_i v_iᵀ / λ_i over the positive eigenvalues λ_i
    """
    eigenvalues, V = torch.linalg.eigh(covariance)
    is_positive = is_numerically_positive(eigenvalues)[..., None]
    coordinates = V.mT @ right
    outside, size = torch.where(is_positive, 0, coordinates).norm(dim=-2), coordinates.norm(dim=-2)
    if bool((outside > torch.finfo(right.dtype).eps ** 0.5 * size).any()):
        raise ValueError(
            f"the observed values have probability 0: they lie {float(outside.max()):.3g} outside the support of a "
            "Gaussian with this singular covariance"
        )
    solution: Tensor = V @ torch.where(
        is_positive, coordinates / torch.where(is_positive, eigenvalues[..., None], 1), 0
    )
    return solution


def condition(
    joint: Gaussian,
    values: Float[Tensor, "*#batch observed"],
    *,
    observed: Sequence[int],
    solve: CovarianceSolver = solve_by_pseudo_inverse,
) -> Gaussian:
    """The distribution of the other coordinates X, in their order, given Y = y of the `observed` (Diehl ex. 5.6).

        μ_{X|y} = μ_X + Σ_XY Σ_YY⁻¹ (y − μ_Y)
        Σ_{X|y} = Σ_XX − Σ_XY Σ_YY⁻¹ Σ_YX,   the same for every y

    Values may have batch axes. With the pseudo-inverse Σ_YY may be singular; then y must lie in the support of Y.
    """
    dim = joint.mean.shape[-1]
    y = list(observed)
    if len(set(y)) < len(y) or not all(0 <= index < dim for index in y):
        raise ValueError(f"observed must be distinct coordinates from 0 to {dim - 1}; got {y}")
    if len(y) != values.shape[-1] or not 0 < len(y) < dim:
        raise ValueError(
            f"need one value per observed coordinate and an unobserved one; got {values.shape[-1]} values for {y}"
        )
    x = [index for index in range(dim) if index not in y]
    covariance = joint.covariance
    sigma_xx, sigma_xy = covariance[..., x, :][..., x], covariance[..., x, :][..., y]
    sigma_yy = covariance[..., y, :][..., y]

    residual = (values - joint.mean[..., y])[..., None]
    mean = joint.mean[..., x] + (sigma_xy @ solve(sigma_yy, residual))[..., 0]
    remaining = symmetrise(sigma_xx - sigma_xy @ solve(sigma_yy, sigma_xy.mT))
    return Gaussian(mean, clip_rounded_eigenvalues(remaining, sigma_xx))


def clip_rounded_eigenvalues(
    covariance: Float[Tensor, "*batch dim dim"], minuend: Float[Tensor, "*batch dim dim"]
) -> Tensor:
    """A difference of covariances, with eigenvalues below the rounding error of the `minuend` set to 0."""
    scale = minuend.detach().abs().amax((-2, -1))[..., None]
    tolerance = 8 * covariance.shape[-1] * torch.finfo(covariance.dtype).eps * scale
    if bool((torch.linalg.eigvalsh(covariance.detach()) > tolerance).all()):
        return covariance  # avoids eigenvectors, whose gradient is undefined at repeated eigenvalues
    eigenvalues, V = torch.linalg.eigh(covariance)
    return symmetrise(V * torch.where(eigenvalues > tolerance, eigenvalues, 0)[..., None, :] @ V.mT)
