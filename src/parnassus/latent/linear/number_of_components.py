"""Model selection for probabilistic PCA: the number of components by the BIC (book sec. 5.1)."""

from math import log, pi

import torch
from jaxtyping import Float
from torch import Tensor


def log_likelihood_by_size(eigenvalues: Float[Tensor, " features"], count: int) -> Float[Tensor, " sizes"]:
    """The maximum log-likelihood of `count` rows under PPCA with K = 0, 1, … N − 1, from their eigenvalues alone.

        ln p = −(count/2) [N ln 2π + Σ_{i≤K} ln λ_i + (N−K) ln σ²_K + N],   σ²_K = (1/(N−K)) Σ_{i>K} λ_i

    K = 0 is an isotropic Gaussian. On the training rows the likelihood cannot decrease with K.
    """
    features = len(eigenvalues)
    if features == 0 or count < 1:
        raise ValueError(f"need at least one eigenvalue and one row; got {features} eigenvalues, count={count}")
    residual = eigenvalues.flip(0).cumsum(0).flip(0)  # Σ_{i>K} λ_i for K = 0 … N − 1
    if not bool(residual[-1] > 0):
        raise ValueError(f"every eigenvalue must be positive for a density to exist; the smallest is {residual[-1]:g}")
    free = torch.arange(features, 0, -1, dtype=eigenvalues.dtype, device=eigenvalues.device)  # N − K
    logs = torch.cat([eigenvalues.new_zeros(1), eigenvalues[:-1].log().cumsum(0)])
    return -count / 2 * (features * log(2 * pi) + logs + free * (residual / free).log() + features)


def num_free_parameters(features: int, latent_dim: int) -> int:
    """N for the mean, 1 for σ² and N K − K(K−1)/2 for W up to rotations (Tipping & Bishop 1999)."""
    if not 0 <= latent_dim < features:
        raise ValueError(f"need 0 ≤ latent_dim < features; got latent_dim={latent_dim}, features={features}")
    return features + 1 + features * latent_dim - latent_dim * (latent_dim - 1) // 2


def bic_by_size(eigenvalues: Float[Tensor, " features"], count: int) -> Float[Tensor, " sizes"]:
    """BIC = −2 ln p + parameters · ln count for K = 0 … N − 1; the minimum is chosen (Schwarz 1978)."""
    features = len(eigenvalues)
    parameters = torch.tensor([num_free_parameters(features, latent_dim) for latent_dim in range(features)]).to(
        eigenvalues
    )
    return -2 * log_likelihood_by_size(eigenvalues, count) + parameters * log(count)
