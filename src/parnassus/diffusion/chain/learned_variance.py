"""Estimated and learned reverse variances (Nichol & Dhariwal 2021; book sec. 13.2.2).

The book fixes the variance of p_θ(x_{t−1} | x_t) at Σ_q(t), which is exact for a point mass; 1 − α_t is exact for
standard normal data. The optimum lies between the two; it matters for the bound and for few sampling steps.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.distributions import Normal

from parnassus.diffusion.chain.elbo import Decoder, DiffusionElboTerms, gaussian_decoder, prior_kl
from parnassus.diffusion.chain.forward_process import Denoiser, diffuse, extract, forward_variance
from parnassus.diffusion.chain.gaussian_posterior import posterior_mean, posterior_variance
from parnassus.diffusion.chain.objectives import Objective
from parnassus.diffusion.chain.predictions import mean_from_noise
from parnassus.diffusion.chain.schedules import Schedule
from parnassus.diffusion.samplers.time_steps import last_state, time_steps
from parnassus.errors import check_positive

LogVarianceFraction: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""(x_t, t) ↦ s for every coordinate: the log-variance is log Σ_q(t) at s = 0 and log(1 − α_t) at s = 1."""


def optimal_variance(schedule: Schedule, errors: Float[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    """The optimal variance of a denoiser, from its error per coordinate and step (Bao et al. 2022).

        Σ*(t) = E‖x_{t−1} − μ_θ(x_t)‖² / D = Σ_q(t) + (1 − α_t)² / ((1 − ᾱ_t) α_t) · E‖ε_θ − ε‖² / D

    It minimises every term of the bound over isotropic variances, without training.
    """
    if errors.shape != schedule.alpha.shape or not bool((errors >= 0).all()):
        raise ValueError(f"errors must hold {len(schedule)} values ≥ 0, one per step; got shape {tuple(errors.shape)}")
    alpha, alpha_bar = schedule.alpha, schedule.alpha_bar
    return posterior_variance(schedule) + (1 - alpha) ** 2 / ((1 - alpha_bar) * alpha) * errors.to(alpha)


def interpolated_log_variance(
    schedule: Schedule, t: Int[Tensor, " batch"], fraction: Float[Tensor, "batch *event"]
) -> Float[Tensor, "batch *event"]:
    """The log-variance s log(1 − α_t) + (1 − s) log Σ_q(t) (Nichol & Dhariwal 2021, eq. 15).

    At the first step, where Σ_q is zero, that of the second step is used.
    """
    lower = posterior_variance(schedule)
    low = torch.cat([lower[1:2] if len(lower) > 1 else forward_variance(schedule), lower[1:]]).log()
    high = forward_variance(schedule).log()
    return extract(low, t, fraction) + fraction * extract(high - low, t, fraction)


def bound_term(
    denoiser: Denoiser,
    schedule: Schedule,
    x0: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    noise: Float[Tensor, "batch *event"],
    *,
    fraction: LogVarianceFraction,
) -> Float[Tensor, " batch"]:
    """KL(q ‖ N(μ_θ, Σ_θ)) in nats, or −log N(x_0; μ_θ, Σ_θ) at the first step (book eq. 13.48).

    KL = ½ Σ_i (log(Σ_i/Σ_q) − 1 + (Σ_q + (μ_q − μ_θ)_i²) / Σ_i)
    """
    x = diffuse(schedule, x0, t, noise)
    mean = mean_from_noise(schedule, x, t, denoiser(x, t))
    log_variance = interpolated_log_variance(schedule, t, fraction(x, t))
    distance = (posterior_mean(schedule, x, x0, t) - mean).square()  # at the first step μ_q = x_0
    truth = extract(posterior_variance(schedule), t, x).expand_as(x)
    later = (truth > 0).flatten(1)
    entropy = truth.where(truth > 0, torch.ones_like(truth)).log() + 1  # of q, up to a constant
    kl = (log_variance - entropy + (truth + distance) / log_variance.exp()).flatten(1) / 2
    nll = -Normal(mean, (log_variance / 2).exp()).log_prob(x0).flatten(1)
    return torch.where(later, kl, nll).sum(1)


def hybrid_objective(fraction: LogVarianceFraction, weight: float = 1e-3) -> Objective:
    """‖ε_θ − ε‖² + weight · T · (bound term of step t) (Nichol & Dhariwal 2021, eq. 16).

    The mean is detached in the second term, so the bound trains the variance only.
    """
    check_positive(weight=weight)

    def objective(denoiser: Denoiser, schedule: Schedule, x0: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        prediction = denoiser(diffuse(schedule, x0, t, noise), t)
        error = (prediction - noise).square().flatten(1).sum(1)
        term = bound_term(lambda _x, _t: prediction.detach(), schedule, x0, t, noise, fraction=fraction)
        return error + weight * len(schedule) * term

    return objective


def learned_variance_ddpm_path(
    denoiser: Denoiser, fraction: LogVarianceFraction, schedule: Schedule, start: Float[Tensor, "count *event"]
) -> Iterator[Float[Tensor, "count *event"]]:
    """x_T, …, x_0 by ancestral sampling with the learned variance (book alg. 13.2)."""
    times = time_steps(None, schedule, start)
    x = start
    yield x
    for step in reversed(range(len(schedule))):
        t = times[step]
        std = (interpolated_log_variance(schedule, t, fraction(x, t)) / 2).exp()
        x = mean_from_noise(schedule, x, t, denoiser(x, t))
        if step > 0:
            x = x + std * torch.randn_like(x)
        yield x


def learned_variance_ddpm(
    denoiser: Denoiser, fraction: LogVarianceFraction, schedule: Schedule, start: Float[Tensor, "count *event"]
) -> Float[Tensor, "count *event"]:
    """x_0 by ancestral sampling with the learned variance (book alg. 13.2)."""
    return last_state(learned_variance_ddpm_path(denoiser, fraction, schedule, start))


def learned_variance_elbo_terms(
    denoiser: Denoiser,
    fraction: LogVarianceFraction,
    schedule: Schedule,
    x0: Float[Tensor, "batch *event"],
    *,
    decoder: Decoder | None = None,
) -> DiffusionElboTerms:
    """The bound with the learned variance, with one draw of noise per step (book eq. 13.48).

    Without a `decoder` p(x_0 | x_1) has the fixed variance 1 − α_1, as in `elbo_terms`.
    """
    decode = decoder or gaussian_decoder(1 - schedule.alpha[0])
    times = time_steps(None, schedule, x0)
    x = diffuse(schedule, x0, times[0], torch.randn_like(x0))
    reconstruction = decode(x0, mean_from_noise(schedule, x, times[0], denoiser(x, times[0])))
    terms = [bound_term(denoiser, schedule, x0, t, torch.randn_like(x0), fraction=fraction) for t in times[1:]]
    matching = torch.stack(terms, 1) if terms else x0.new_zeros(len(x0), 0)
    return DiffusionElboTerms(reconstruction, prior_kl(schedule, x0), matching, x0[0].numel())
