"""Denoising autoencoders: reconstruct the clean input from a corrupted one (book sec. 4.4)."""

from collections.abc import Callable
from math import log, pi
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_non_negative, check_positive
from parnassus.latent.autoencoders.autoencoder import Autoencoder

Corruption: TypeAlias = Callable[[Tensor], Tensor]
"""A sample x̂ ~ C(x̂ | x); bind the level of the corruptions below with `partial`."""


def add_gaussian_noise(
    x: Float[Tensor, "*shape"], *, std: float, generator: torch.Generator | None = None
) -> Float[Tensor, "*shape"]:
    """x̂ = x + std · ε with standard normal ε (book sec. 4.4)."""
    check_non_negative(std=std)
    return x + std * torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)


def mask_at_random(
    x: Float[Tensor, "*shape"], *, probability: float, generator: torch.Generator | None = None
) -> Float[Tensor, "*shape"]:
    """Set each coordinate to 0 with probability `probability` (book sec. 4.4)."""
    return x.masked_fill(_uniform(x, probability, generator) < probability, 0)


def add_salt_and_pepper_noise(
    x: Float[Tensor, "*shape"], *, probability: float, generator: torch.Generator | None = None
) -> Float[Tensor, "*shape"]:
    """Replace each coordinate with probability `probability`, by 0 or 1 with equal chances (book sec. 4.4)."""
    u = _uniform(x, probability, generator)
    return x.masked_fill(u < probability, 0).masked_fill(u < probability / 2, 1)


class DenoisingAutoencoder(nn.Module):
    """An autoencoder that reconstructs x from x̂ ~ C(x̂ | x) (book sec. 4.4).

        loss = ⟨(x − g(f(x̂)))²⟩,   minimised by g(f(x̂)) = E[x | x̂]

    f is the encoder and g the decoder, as in this section of the text.
    """

    def __init__(self, autoencoder: Autoencoder, corrupt: Corruption) -> None:
        super().__init__()
        self.autoencoder = autoencoder
        self.corrupt = corrupt

    def forward(self, x_hat: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch *event"]:
        """g(f(x̂)), the estimate of the clean input."""
        clean: Tensor = self.autoencoder(x_hat)
        return clean

    @accepts_arrays
    def encode(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch latent"]:
        return self.autoencoder.encode(x)

    @accepts_arrays
    def decode(self, z: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch *event"]:
        return self.autoencoder.decode(z)

    def loss(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
        return mse_loss(self(self.corrupt(x)), x)


def exact_denoiser(
    points: Float[Tensor, "count features"], x_hat: Float[Tensor, "batch features"], *, std: float
) -> Float[Tensor, "batch features"]:
    """E[x | x̂] if x is one of finitely many points and the noise is Gaussian (book sec. 4.4).

    E[x | x̂] = Σ_i w_i x_i,   w = softmax_i(−‖x̂ − x_i‖² / 2 std²)
    """
    return _log_kernel(points, x_hat, std).softmax(1) @ points


def linear_denoiser_matrix(
    sigma: Float[Tensor, "features features"], *, std: float
) -> Float[Tensor, "features features"]:
    """The matrix Σ (Σ + std² I)⁻¹ of E[x | x̂] for x ~ N(0, Σ) and Gaussian noise (book sec. 4.4)."""
    noisy = sigma + std**2 * torch.eye(len(sigma), dtype=sigma.dtype, device=sigma.device)
    matrix: Tensor = torch.linalg.solve(noisy, sigma, left=False)
    return matrix


def smoothed_log_density(
    points: Float[Tensor, "count features"], x_hat: Float[Tensor, "batch features"], *, std: float
) -> Float[Tensor, " batch"]:
    """The log-density log p_s(x̂) of the points after Gaussian noise: a mixture of Gaussians centred at the points."""
    count, features = points.shape
    normaliser = log(count) + features / 2 * log(2 * pi * std**2)
    return _log_kernel(points, x_hat, std).logsumexp(1) - normaliser


def score_from_denoiser(
    denoised: Float[Tensor, "*shape"], x_hat: Float[Tensor, "*shape"], *, std: float
) -> Float[Tensor, "*shape"]:
    """∇ log p_s(x̂) = (E[x | x̂] − x̂) / std², Tweedie's formula."""
    return (denoised - x_hat) / std**2


def psnr(x: Float[Tensor, "*shape"], clean: Float[Tensor, "*shape"]) -> Float[Tensor, ""]:
    """Peak signal-to-noise ratio in decibels for values in [0, 1]: −10 log₁₀ of the mean squared error."""
    return -10 * mse_loss(x, clean).log10()


def _log_kernel(points: Tensor, x_hat: Tensor, std: float) -> Tensor:
    check_positive(std=std)
    distance: Tensor = torch.cdist(x_hat, points, compute_mode="donot_use_mm_for_euclid_dist")
    return -distance.square() / (2 * std**2)


def _uniform(x: Tensor, probability: float, generator: torch.Generator | None) -> Tensor:
    if not 0 <= probability <= 1:
        raise ValueError(f"probability must lie between 0 and 1; got probability={probability}")
    return torch.rand(x.shape, generator=generator, device=x.device)
