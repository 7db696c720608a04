"""How much noise the way back should add: measured, or learned (Nichol & Dhariwal 2021; book sec. 13.2.2).

The book fixes the variance of p_θ(x_{t−1} | x_t) at Σ_q(t), which knows x_0; 1 − α_t is what pure noise as data would
need. The best lies between, and matters for the bound and where steps are few.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.distributions import Normal

from parnassus.diffusion.elbo import Decoder, ElboTerms, gaussian_decoder, prior_kl
from parnassus.diffusion.objectives import Objective
from parnassus.diffusion.process import (
    Denoiser,
    diffuse,
    forward_variance,
    mean_from_noise,
    posterior_mean,
    posterior_variance,
    spread,
)
from parnassus.diffusion.samplers import last_state, moments
from parnassus.diffusion.schedules import Schedule

Share: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""(x_t, t) ↦ where the log-variance of every coordinate lies: 0 at Σ_q(t), 1 at 1 − α_t, and beyond if it must."""


def optimal_variance(schedule: Schedule, errors: Float[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    """The variance that fits a given denoiser best, from E‖ε_θ − ε‖² a coordinate at each step (Bao et al. 2022).

        Σ*(t) = E‖x_{t−1} − μ_θ(x_t)‖² / D = Σ_q(t) + (1 − α_t)² / ((1 − ᾱ_t) α_t) · E‖ε_θ − ε‖² / D

    It minimises every term of the bound over variances that are the same for all coordinates; nothing is trained.
    """
    if errors.shape != schedule.alpha.shape or not bool((errors >= 0).all()):
        raise ValueError(f"errors must be {len(schedule)} numbers ≥ 0, one a step; got {tuple(errors.shape)}")
    alpha, alpha_bar = schedule.alpha, schedule.alpha_bar
    return posterior_variance(schedule) + (1 - alpha) ** 2 / ((1 - alpha_bar) * alpha) * errors.to(alpha)


def interpolated_log_variance(
    schedule: Schedule, t: Int[Tensor, " batch"], share: Float[Tensor, "batch *event"]
) -> Float[Tensor, "batch *event"]:
    """Between both variances by factors: log Σ = s log(1 − α_t) + (1 − s) log Σ_q(t) (Nichol & Dhariwal 2021, eq. 15).

    Σ_q is zero at the first step; the second's stands in for it.
    """
    least = posterior_variance(schedule)
    low = torch.cat([least[1:2] if len(least) > 1 else forward_variance(schedule), least[1:]]).log()
    high = forward_variance(schedule).log()
    return spread(low, t, share) + share * spread(high - low, t, share)


def step_cost(
    denoiser: Denoiser,
    schedule: Schedule,
    x0: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    noise: Float[Tensor, "batch *event"],
    *,
    share: Share,
) -> Float[Tensor, " batch"]:
    """KL(q(x_{t−1} | x_t, x_0) ‖ N(μ_θ, Σ_θ)) in nats, and −log N(x_0; μ_θ, Σ_θ) at the first step (book eq. 13.48).

    KL = ½ Σ_i (log(Σ_i/Σ_q) − 1 + (Σ_q + (μ_q − μ_θ)_i²) / Σ_i)
    """
    x = diffuse(schedule, x0, t, noise)
    mean = mean_from_noise(schedule, x, t, denoiser(x, t))
    log_variance = interpolated_log_variance(schedule, t, share(x, t))
    distance = (posterior_mean(schedule, x, x0, t) - mean).square()  # at the first step μ_q = x_0
    truth = spread(posterior_variance(schedule), t, x).expand_as(x)
    later = (truth > 0).flatten(1)
    entropy = truth.where(truth > 0, torch.ones_like(truth)).log() + 1  # of q, up to a constant
    kl = (log_variance - entropy + (truth + distance) / log_variance.exp()).flatten(1) / 2
    surprise = -Normal(mean, (log_variance / 2).exp()).log_prob(x0).flatten(1)
    return torch.where(later, kl, surprise).sum(1)


def hybrid(share: Share, weight: float = 1e-3) -> Objective:
    """‖ε_θ − ε‖² + weight · T · (the bound's cost of step t), which teaches Σ_θ alone (Nichol & Dhariwal 2021, eq. 16).

    The noise in the second part is held fixed: the bound moves the variance and leaves the mean to the first part.
    """
    if not weight > 0:
        raise ValueError(f"weight must be positive; got weight={weight}")

    def objective(denoiser: Denoiser, schedule: Schedule, x0: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        found = denoiser(diffuse(schedule, x0, t, noise), t)
        error = (found - noise).square().flatten(1).sum(1)
        cost = step_cost(lambda _x, _t: found.detach(), schedule, x0, t, noise, share=share)
        return error + weight * len(schedule) * cost

    return objective


def learned_ddpm_path(
    denoiser: Denoiser, share: Share, schedule: Schedule, start: Float[Tensor, "count *event"]
) -> Iterator[Float[Tensor, "count *event"]]:
    """x_T, …, x_0 by ancestral sampling with the learned variance (book alg. 13.2)."""
    times = moments(None, schedule, start)
    x = start
    yield x
    for step in reversed(range(len(schedule))):
        t = times[step]
        std = (interpolated_log_variance(schedule, t, share(x, t)) / 2).exp()
        x = mean_from_noise(schedule, x, t, denoiser(x, t))
        if step > 0:
            x = x + std * torch.randn_like(x)
        yield x


def learned_ddpm(
    denoiser: Denoiser, share: Share, schedule: Schedule, start: Float[Tensor, "count *event"]
) -> Float[Tensor, "count *event"]:
    """x_0 by ancestral sampling with the learned variance (book alg. 13.2)."""
    return last_state(learned_ddpm_path(denoiser, share, schedule, start))


def learned_elbo_terms(
    denoiser: Denoiser,
    share: Share,
    schedule: Schedule,
    x0: Float[Tensor, "batch *event"],
    *,
    decoder: Decoder | None = None,
) -> ElboTerms:
    """The bound with the learned variance, one draw of noise a step (book eq. 13.48).

    Without a `decoder` p(x_0 | x_1) has the fixed variance 1 − α_1, as in `elbo_terms`.
    """
    decode = decoder or gaussian_decoder(1 - schedule.alpha[0])
    times = moments(None, schedule, x0)
    x = diffuse(schedule, x0, times[0], torch.randn_like(x0))
    reconstruction = decode(x0, mean_from_noise(schedule, x, times[0], denoiser(x, times[0])))
    costs = [step_cost(denoiser, schedule, x0, t, torch.randn_like(x0), share=share) for t in times[1:]]
    matching = torch.stack(costs, 1) if costs else x0.new_zeros(len(x0), 0)
    return ElboTerms(reconstruction, prior_kl(schedule, x0), matching, x0[0].numel())
