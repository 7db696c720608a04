"""The posterior q(x_{t−1} | x_t, x_0) and Bayes' rule for linear Gaussian models (book sec. 13.2)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.chain.forward_process import extract
from parnassus.diffusion.chain.schedules import Schedule


def posterior_mean(
    schedule: Schedule,
    x: Float[Tensor, "batch *event"],
    x0: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
) -> Float[Tensor, "batch *event"]:
    """The mean μ_q of q(x_{t−1} | x_t, x_0) (book eq. 13.37).

    μ_q = (√α_t (1 − ᾱ_{t−1}) x_t + √ᾱ_{t−1} (1 − α_t) x_0) / (1 − ᾱ_t)
    """
    alpha, alpha_bar, before = schedule.alpha, schedule.alpha_bar, schedule.alpha_bar_before
    x_factor = alpha.sqrt() * (1 - before) / (1 - alpha_bar)
    x0_factor = before.sqrt() * (1 - alpha) / (1 - alpha_bar)
    return extract(x_factor, t, x) * x + extract(x0_factor, t, x) * x0


def posterior_variance(schedule: Schedule) -> Float[Tensor, " steps"]:
    """Σ_q(t) = (1 − α_t) (1 − ᾱ_{t−1}) / (1 − ᾱ_t): zero at the first step (book eq. 13.38)."""
    return (1 - schedule.alpha) * (1 - schedule.alpha_bar_before) / (1 - schedule.alpha_bar)


def linear_gaussian_posterior(
    y: Float[Tensor, " m"],
    *,
    mean: Float[Tensor, " d"],
    precision: Float[Tensor, "d d"],
    A: Float[Tensor, "m d"],
    b: Float[Tensor, " m"],
    noise_precision: Float[Tensor, "m m"],
) -> tuple[Float[Tensor, " d"], Float[Tensor, "d d"]]:
    """Mean and covariance of the posterior of x given y = Ax + b + noise (book eq. 13.33).

    p(x) = N(μ, Λ⁻¹),  p(y|x) = N(Ax + b, L⁻¹)
    p(x|y) = N(Σ (Aᵀ L (y − b) + Λ μ), Σ),  Σ = (Λ + Aᵀ L A)⁻¹
    """
    covariance = torch.cholesky_inverse(torch.linalg.cholesky(precision + A.mT @ noise_precision @ A))
    return covariance @ (A.mT @ noise_precision @ (y - b) + precision @ mean), covariance


def combined_std(first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The standard deviation √(a² + b²) of a ε₁ + b ε₂ (book eqs. 13.28-13.29)."""
    return torch.hypot(first, second)
