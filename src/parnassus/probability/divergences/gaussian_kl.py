"""Kullback-Leibler divergence of two Gaussians in closed form (book eq. 6.15, Diehl sec. 6)."""

import torch
from jaxtyping import Float
from torch import Tensor


def diagonal_gaussian_kl(
    mean_1: Float[Tensor, "*#batch #d"],
    variance_1: Float[Tensor, "*#batch #d"],
    mean_2: Float[Tensor, "*#batch #d"],
    variance_2: Float[Tensor, "*#batch #d"],
) -> Float[Tensor, "*#batch"]:
    """KL(N₁ ‖ N₂) for covariances diag(σ²), summed over the coordinates (book eqs. 6.15, 13.50).

        Σ_j [log(σ₂/σ₁) + (σ₁² + (μ₁ − μ₂)²) / (2σ₂²) − ½]

    A last axis of length 1 broadcasts: the same value in every coordinate, as in σ² I.
    """
    _check_positive(variance_1, variance_2)
    ratio = variance_1 / variance_2
    return ((ratio - 1 - ratio.log() + (mean_1 - mean_2).square() / variance_2) / 2).sum(-1)


def gaussian_kl(
    mean_1: Float[Tensor, "*batch d"],
    covariance_1: Float[Tensor, "*batch d d"],
    mean_2: Float[Tensor, "*batch d"],
    covariance_2: Float[Tensor, "*batch d d"],
) -> Float[Tensor, "*batch"]:
    """KL(N₁ ‖ N₂) with full covariances, by Cholesky factors (book eq. 6.15 in d dimensions; book lem. 13.1).

    ½ (log det Σ₂ − log det Σ₁ − d + tr(Σ₂⁻¹ Σ₁) + (μ₂ − μ₁)ᵀ Σ₂⁻¹ (μ₂ − μ₁))
    """
    L1, L2 = torch.linalg.cholesky(covariance_1), torch.linalg.cholesky(covariance_2)
    half_log_det = (L2.diagonal(dim1=-2, dim2=-1).log() - L1.diagonal(dim1=-2, dim2=-1).log()).sum(-1)
    trace = torch.linalg.solve_triangular(L2, L1, upper=False).square().sum((-2, -1))  # ‖L₂⁻¹ L₁‖² = tr(Σ₂⁻¹ Σ₁)
    shift = torch.linalg.solve_triangular(L2, (mean_2 - mean_1)[..., None], upper=False).square().sum((-2, -1))
    kl: Tensor = half_log_det + (trace - mean_1.shape[-1] + shift) / 2
    return kl


def _check_positive(*variances: Tensor) -> None:
    for variance in variances:
        if not bool((variance > 0).all()):
            raise ValueError(f"a variance must be positive; the smallest is {float(variance.min()):g}")
