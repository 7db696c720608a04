"""Two facts about Gaussians on which diffusion stands: Bayes' rule and sums (book secs. 13.2.1-13.2.4)."""

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


def merged_scale(first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The one scale c for which c ε is distributed as a ε₁ + b ε₂: c = √(a² + b²) (book eqs. 13.28-13.29)."""
    return torch.hypot(first, second)
