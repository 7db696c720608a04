"""How many latent dimensions? Likelihood rises with each; what they cost in parameters decides (book sec. 5.1)."""

from math import log, pi

import torch
from jaxtyping import Float
from torch import Tensor


def likelihood_by_size(eigenvalues: Float[Tensor, " features"], count: int) -> Float[Tensor, " sizes"]:
    """The greatest log-likelihood of `count` rows under PPCA with K = 0, 1, … N − 1, from their eigenvalues alone.

        ln p = −(count/2) [N ln 2π + Σ_{i≤K} ln λ_i + (N−K) ln σ²_K + N],   σ²_K = (1/(N−K)) Σ_{i>K} λ_i

    K = 0 is a round Gaussian. It cannot fall with K, so that on the rows fitted the largest size always wins.
    """
    features = len(eigenvalues)
    if features == 0 or count < 1:
        raise ValueError(f"need eigenvalues and at least one row; got {features} eigenvalues, count={count}")
    left_out = eigenvalues.flip(0).cumsum(0).flip(0)  # Σ_{i>K} λ_i for K = 0 … N − 1
    if not bool(left_out[-1] > 0):
        raise ValueError(f"every eigenvalue must be positive for a density to exist; the last is {left_out[-1]:g}")
    free = torch.arange(features, 0, -1).to(eigenvalues)  # N − K
    logs = torch.cat([eigenvalues.new_zeros(1), eigenvalues[:-1].log().cumsum(0)])
    return -count / 2 * (features * log(2 * pi) + logs + free * (left_out / free).log() + features)


def free_parameters(features: int, latent: int) -> int:
    """N for the mean, 1 for σ² and N K − K(K−1)/2 for W, whose rotations change nothing (Tipping & Bishop 1999)."""
    if not 0 <= latent < features:
        raise ValueError(f"need 0 ≤ latent < features; got latent={latent}, features={features}")
    return features + 1 + features * latent - latent * (latent - 1) // 2


def bic_by_size(eigenvalues: Float[Tensor, " features"], count: int) -> Float[Tensor, " sizes"]:
    """−2 ln p + parameters · ln count for K = 0 … N − 1: Schwarz's criterion, the least is chosen (Schwarz 1978)."""
    features = len(eigenvalues)
    parameters = torch.tensor([free_parameters(features, latent) for latent in range(features)]).to(eigenvalues)
    return -2 * likelihood_by_size(eigenvalues, count) + parameters * log(count)
