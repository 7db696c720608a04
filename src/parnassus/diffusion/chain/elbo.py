"""The evidence lower bound (ELBO) of a diffusion model, term by term (book sec. 13.2.3)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Normal

from parnassus.diffusion.chain.forward_process import Denoiser, diffuse
from parnassus.diffusion.chain.gaussian_posterior import posterior_mean, posterior_variance
from parnassus.diffusion.chain.predictions import mean_from_noise
from parnassus.diffusion.chain.schedules import Schedule
from parnassus.probability import diagonal_gaussian_kl

Decoder: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""(x_0, mean of the last reverse step) ↦ log p(x_0 | x_1) for each example."""


@dataclass(frozen=True, eq=False)
class DiffusionElboTerms:
    """The three terms of the bound, in nats per example (book eq. 13.48).

    log p(x_0) ≥ reconstruction − prior − Σ_t matching_t

    >>> matching = torch.tensor([[0.25, 0.5]])
    >>> DiffusionElboTerms(torch.tensor([-1.0]), torch.tensor([0.5]), matching, dimensions=2).elbo.tolist()
    [-2.25]
    """

    reconstruction: Float[Tensor, " batch"]  # E log p_θ(x_0 | x_1)
    prior: Float[Tensor, " batch"]  # KL(q(x_T | x_0) ‖ N(0, I))
    matching: Float[Tensor, "batch later"]  # E KL(q(x_{t−1} | x_t, x_0) ‖ p_θ(x_{t−1} | x_t)), t = 2 … T
    dimensions: int

    @property
    def elbo(self) -> Float[Tensor, " batch"]:
        """The bound on log p(x_0), in nats."""
        return self.reconstruction - self.prior - self.matching.sum(1)

    @property
    def bits_per_dimension(self) -> Float[Tensor, " batch"]:
        """−ELBO / (D log 2), comparable between papers only with `pixel_decoder`."""
        return -self.elbo / (self.dimensions * log(2))


def elbo_terms(
    denoiser: Denoiser,
    schedule: Schedule,
    x0: Float[Tensor, "batch *event"],
    *,
    variance: Callable[[Schedule], Tensor] = posterior_variance,
    decoder: Decoder | None = None,
    noise: Callable[[Tensor], Tensor] = torch.randn_like,
) -> DiffusionElboTerms:
    """One unbiased estimate of each term, with newly sampled `noise` at every step (book eq. 13.48).

    Since Σ_q(1) = 0, p(x_0 | x_1) has variance 1 − α_1 without a `decoder`.
    """
    decode = decoder or gaussian_decoder(1 - schedule.alpha[0])
    truth = posterior_variance(schedule).to(x0.dtype).to(x0.device)
    model = variance(schedule).to(x0.dtype).to(x0.device)
    reconstruction, matching = x0.new_zeros(len(x0)), []
    for step in range(len(schedule)):
        t = torch.full((len(x0),), step, device=x0.device)
        x = diffuse(schedule, x0, t, noise(x0))
        mean = mean_from_noise(schedule, x, t, denoiser(x, t))
        if step == 0:
            reconstruction = decode(x0, mean)
        else:
            mu_q = posterior_mean(schedule, x, x0, t)
            variances = truth[step].expand(1, 1), model[step].expand(1, 1)
            matching.append(diagonal_gaussian_kl(mu_q.flatten(1), variances[0], mean.flatten(1), variances[1]))
    terms = torch.stack(matching, 1) if matching else x0.new_zeros(len(x0), 0)
    return DiffusionElboTerms(reconstruction, prior_kl(schedule, x0), terms, x0[0].numel())


def prior_kl(schedule: Schedule, x0: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
    """KL(q(x_T | x_0) ‖ N(0, I)) between the end of the chain and the prior (book secs. 13.2, 13.2.4)."""
    alpha_bar = schedule.alpha_bar[-1].to(x0.dtype).to(x0.device)
    mean = alpha_bar.sqrt() * x0.flatten(1)
    return diagonal_gaussian_kl(mean, (1 - alpha_bar).expand(1, 1), torch.zeros_like(mean), mean.new_ones(1, 1))


def gaussian_decoder(variance: float | Tensor) -> Decoder:
    """p(x_0 | x_1) = N(mean, variance I), a density for continuous data."""

    def log_prob(x0: Tensor, mean: Tensor) -> Tensor:
        log_density: Tensor = Normal(
            mean, torch.as_tensor(variance, dtype=mean.dtype, device=mean.device).sqrt()
        ).log_prob(x0)
        return log_density.flatten(1).sum(1)

    return log_prob


def pixel_decoder(std: float, levels: int = 256) -> Decoder:
    """The probability of the bin of each pixel value under N(mean, std²) (Ho et al. 2020, eq. 13).

    For `levels` equally spaced values from −1 to 1; the outermost bins extend to infinity.
    """
    half = 1 / (levels - 1)

    def log_prob(x0: Tensor, mean: Tensor) -> Tensor:
        low = torch.where(x0 <= -1 + half, -torch.inf, (x0 - half - mean) / std)
        high = torch.where(x0 >= 1 - half, torch.inf, (x0 + half - mean) / std)
        return _log_mass(low, high).flatten(1).sum(1)

    return log_prob


def _log_mass(low: Tensor, high: Tensor) -> Tensor:
    """log(Φ(high) − Φ(low)), computed in the tail where both are small."""
    upper = low + high > 0
    low, high = torch.where(upper, -high, low), torch.where(upper, -low, high)
    log_high: Tensor = torch.special.log_ndtr(high)
    return log_high + torch.log(-torch.expm1(torch.special.log_ndtr(low) - log_high))
