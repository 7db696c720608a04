"""Three facts about Gaussians on which diffusion stands: Bayes' rule, divergence, sum (book secs. 13.2.1-13.2.4)."""

import torch
from jaxtyping import Float
from torch import Tensor


def linear_gaussian_posterior(
    y: Float[Tensor, " m"],
    *,
    mean: Float[Tensor, " d"],
    precision: Float[Tensor, "d d"],
    A: Float[Tensor, "m d"],
    b: Float[Tensor, " m"],
    noise_precision: Float[Tensor, "m m"],
) -> tuple[Float[Tensor, " d"], Float[Tensor, "d d"]]:
    """Mean and covariance of x given y = Ax + b + noise (book eq. 13.33).

    p(x) = N(μ, Λ⁻¹),  p(y|x) = N(Ax + b, L⁻¹)
    p(x|y) = N(Σ (Aᵀ L (y − b) + Λ μ), Σ),  Σ = (Λ + Aᵀ L A)⁻¹
    """
    covariance = torch.cholesky_inverse(torch.linalg.cholesky(precision + A.mT @ noise_precision @ A))
    return covariance @ (A.mT @ noise_precision @ (y - b) + precision @ mean), covariance


def gaussian_kl(
    mean_1: Float[Tensor, "*batch d"],
    covariance_1: Float[Tensor, "*batch d d"],
    mean_2: Float[Tensor, "*batch d"],
    covariance_2: Float[Tensor, "*batch d d"],
) -> Float[Tensor, "*batch"]:
    """KL(N₁ ‖ N₂) with full covariances, through Cholesky factors (book lem. 13.1).

    ½ (log det Σ₂ − log det Σ₁ − D + tr(Σ₂⁻¹ Σ₁) + (μ₂ − μ₁)ᵀ Σ₂⁻¹ (μ₂ − μ₁))          (book eq. 13.50)
    """
    L1, L2 = torch.linalg.cholesky(covariance_1), torch.linalg.cholesky(covariance_2)
    log_det: Tensor = (L2.diagonal(dim1=-2, dim2=-1).log() - L1.diagonal(dim1=-2, dim2=-1).log()).sum(
        -1
    )  # of roots: ½ log
    trace: Tensor = (
        torch.linalg.solve_triangular(L2, L1, upper=False).square().sum((-2, -1))
    )  # ‖L₂⁻¹ L₁‖² = tr(Σ₂⁻¹ Σ₁)
    shift: Tensor = torch.linalg.solve_triangular(L2, (mean_2 - mean_1)[..., None], upper=False).square().sum((-2, -1))
    return log_det + 0.5 * (trace - mean_1.shape[-1] + shift)


def diagonal_gaussian_kl(
    mean_1: Float[Tensor, "*batch d"],
    variance_1: Float[Tensor, "*#batch #d"],
    mean_2: Float[Tensor, "*batch d"],
    variance_2: Float[Tensor, "*#batch #d"],
) -> Float[Tensor, "*batch"]:
    """The same divergence for covariances diag(σ²); a last axis of length 1 means σ² I (book eq. 13.50)."""
    ratio = variance_1 / variance_2
    return 0.5 * (ratio - 1 - ratio.log() + (mean_2 - mean_1).square() / variance_2).sum(-1)


def merged_scale(first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The one scale c for which c ε is distributed as a ε₁ + b ε₂: c = √(a² + b²) (book eqs. 13.28-13.29)."""
    return torch.hypot(first, second)
