"""Denoising autoencoders: spoil the input, ask for the clean one back (book sec. 4.4)."""

from collections.abc import Callable
from math import log, pi
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from parnassus.latent.autoencoder import Autoencoder

Corruption: TypeAlias = Callable[[Tensor], Tensor]
"""A draw x̂ ~ C(x̂ | x); bind the level of the kernels below with `partial`."""


def gaussian(
    x: Float[Tensor, "*shape"], *, std: float, generator: torch.Generator | None = None
) -> Float[Tensor, "*shape"]:
    """x̂ = x + std · ε with standard normal ε (book sec. 4.4)."""
    if std < 0:
        raise ValueError(f"std must not be negative; got std={std}")
    return x + std * torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)


def masking(
    x: Float[Tensor, "*shape"], *, share: float, generator: torch.Generator | None = None
) -> Float[Tensor, "*shape"]:
    """Each coordinate is set to 0 with probability `share` (book sec. 4.4)."""
    return x.masked_fill(_uniform(x, share, generator) < share, 0)


def salt_and_pepper(
    x: Float[Tensor, "*shape"], *, share: float, generator: torch.Generator | None = None
) -> Float[Tensor, "*shape"]:
    """Each coordinate is replaced with probability `share`, by 0 or by 1 equally often (book sec. 4.4)."""
    u = _uniform(x, share, generator)
    return x.masked_fill(u < share, 0).masked_fill(u < share / 2, 1)


class DenoisingAutoencoder(nn.Module):
    """An autoencoder that sees x̂ ~ C(x̂ | x) and must answer x (book sec. 4.4).

        loss = ⟨(x − g(f(x̂)))²⟩,   least for g(f(x̂)) = E[x | x̂]

    Here f is the encoder and g the decoder, as in this section of the text.
    """

    def __init__(self, autoencoder: Autoencoder, corrupt: Corruption) -> None:
        super().__init__()
        self.autoencoder = autoencoder
        self.corrupt = corrupt

    def forward(self, x_hat: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch *event"]:
        """g(f(x̂)), the estimate of the clean input."""
        clean: Tensor = self.autoencoder(x_hat)
        return clean

    def encode(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch latent"]:
        return self.autoencoder.encode(x)

    def decode(self, z: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch *event"]:
        return self.autoencoder.decode(z)

    def loss(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
        return mse_loss(self(self.corrupt(x)), x)


def ideal_denoiser(
    points: Float[Tensor, "count features"], x_hat: Float[Tensor, "batch features"], *, std: float
) -> Float[Tensor, "batch features"]:
    """E[x | x̂] when x is one of finitely many points and the noise is Gaussian (book sec. 4.4).

    E[x | x̂] = Σ_i w_i x_i,   w = softmax_i(−‖x̂ − x_i‖² / 2 std²)
    """
    return _closeness(points, x_hat, std).softmax(1) @ points


def gaussian_denoiser(sigma: Float[Tensor, "features features"], *, std: float) -> Float[Tensor, "features features"]:
    """The matrix Σ (Σ + std² I)⁻¹ of E[x | x̂] for x ~ N(0, Σ) and Gaussian noise (book sec. 4.4)."""
    noisy = sigma + std**2 * torch.eye(len(sigma), dtype=sigma.dtype, device=sigma.device)
    matrix: Tensor = torch.linalg.solve(noisy, sigma, left=False)
    return matrix


def smoothed_log_density(
    points: Float[Tensor, "count features"], x_hat: Float[Tensor, "batch features"], *, std: float
) -> Float[Tensor, " batch"]:
    """The log-density log p_s(x̂) of the points after Gaussian noise: a mixture centred at each of them."""
    count, features = points.shape
    normaliser = log(count) + features / 2 * log(2 * pi * std**2)
    return _closeness(points, x_hat, std).logsumexp(1) - normaliser


def score(denoised: Float[Tensor, "*shape"], x_hat: Float[Tensor, "*shape"], *, std: float) -> Float[Tensor, "*shape"]:
    """∇ log p_s(x̂) = (E[x | x̂] − x̂) / std²: the way back to the data is the slope of their log-density."""
    return (denoised - x_hat) / std**2


def psnr(x: Float[Tensor, "*shape"], clean: Float[Tensor, "*shape"]) -> Float[Tensor, ""]:
    """Peak signal-to-noise ratio in decibels for values in [0, 1]: −10 log₁₀ of the mean squared error."""
    return -10 * mse_loss(x, clean).log10()


def _closeness(points: Tensor, x_hat: Tensor, std: float) -> Tensor:
    if std <= 0:
        raise ValueError(f"std must be positive; got std={std}")
    distance: Tensor = torch.cdist(x_hat, points, compute_mode="donot_use_mm_for_euclid_dist")
    return -distance.square() / (2 * std**2)


def _uniform(x: Tensor, share: float, generator: torch.Generator | None) -> Tensor:
    if not 0 <= share <= 1:
        raise ValueError(f"share must lie between 0 and 1; got share={share}")
    return torch.rand(x.shape, generator=generator, device=x.device)
