"""The forward chain, its exact posterior, and the four names of one prediction (book secs. 13.2.1-13.2.4).

A `Denoiser` maps (x_t, t) to the noise ε it believes to be inside x_t. Code counts t from 0, the book from 1.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.distributions import Normal

from parnassus.diffusion.schedules import Schedule

Denoiser: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def spread(values: Float[Tensor, " steps"], t: Int[Tensor, " batch"], like: Float[Tensor, "batch *event"]) -> Tensor:
    """values[t] in the type of `like`, shaped so that it multiplies `like` example by example."""
    table = values.to(like.dtype).to(like.device, non_blocking=True)  # type first: not every device has float64
    return table[t].reshape(-1, *[1] * (like.dim() - 1))


def forward_step(
    schedule: Schedule,
    x: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    noise: Float[Tensor, "batch *event"],
) -> Float[Tensor, "batch *event"]:
    """x_t = √α_t x_{t−1} + √(1 − α_t) ε, one step of the chain (book eq. 13.25)."""
    return spread(schedule.alpha.sqrt(), t, x) * x + spread((1 - schedule.alpha).sqrt(), t, x) * noise


def diffuse(
    schedule: Schedule,
    x0: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    noise: Float[Tensor, "batch *event"],
) -> Float[Tensor, "batch *event"]:
    """x_t = √ᾱ_t x_0 + √(1 − ᾱ_t) ε, all steps up to t at once (book eq. 13.30)."""
    return spread(schedule.alpha_bar.sqrt(), t, x0) * x0 + spread((1 - schedule.alpha_bar).sqrt(), t, x0) * noise


def forward_log_prob(
    schedule: Schedule, chain: Float[Tensor, "steps batch d"], x0: Float[Tensor, "batch d"]
) -> Float[Tensor, " batch"]:
    """The log-density of a whole chain given its beginning (book eqs. 13.22-13.24).

    log q(x_1, …, x_T | x_0) = Σ_t log N(x_t; √α_t x_{t−1}, (1 − α_t) I)
    """
    before = torch.cat([x0[None], chain[:-1]])
    alpha = schedule.alpha.to(chain).reshape(-1, 1, 1)
    kernel = Normal(alpha.sqrt() * before, (1 - alpha).sqrt())
    log_prob: Tensor = kernel.log_prob(chain).sum((0, 2))
    return log_prob


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
    of_x = alpha.sqrt() * (1 - before) / (1 - alpha_bar)
    of_x0 = before.sqrt() * (1 - alpha) / (1 - alpha_bar)
    return spread(of_x, t, x) * x + spread(of_x0, t, x) * x0


def posterior_variance(schedule: Schedule) -> Float[Tensor, " steps"]:
    """Σ_q(t) = (1 − α_t) (1 − ᾱ_{t−1}) / (1 − ᾱ_t): zero at the first step (book eq. 13.38)."""
    return (1 - schedule.alpha) * (1 - schedule.alpha_bar_before) / (1 - schedule.alpha_bar)


def forward_variance(schedule: Schedule) -> Float[Tensor, " steps"]:
    """1 − α_t, the other usual choice for the reverse model: never below Σ_q(t) (book sec. 13.2.2)."""
    return 1 - schedule.alpha


# One prediction, four names. Each function turns what a network gives into another name for the same thing.


def x0_from_noise(
    schedule: Schedule,
    x: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    noise: Float[Tensor, "batch *event"],
) -> Float[Tensor, "batch *event"]:
    """x_0 = (x_t − √(1 − ᾱ_t) ε) / √ᾱ_t (book eq. 13.71)."""
    alpha_bar = schedule.alpha_bar
    return spread(alpha_bar.rsqrt(), t, x) * x - spread((1 / alpha_bar - 1).sqrt(), t, x) * noise


def noise_from_x0(
    schedule: Schedule,
    x: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    x0: Float[Tensor, "batch *event"],
) -> Float[Tensor, "batch *event"]:
    """ε = (x_t − √ᾱ_t x_0) / √(1 − ᾱ_t), the inverse of `x0_from_noise` (book eq. 13.71)."""
    return (x - spread(schedule.alpha_bar.sqrt(), t, x) * x0) * spread((1 - schedule.alpha_bar).rsqrt(), t, x)


def mean_from_noise(
    schedule: Schedule,
    x: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    noise: Float[Tensor, "batch *event"],
) -> Float[Tensor, "batch *event"]:
    """μ = x_t / √α_t − (1 − α_t) / (√(1 − ᾱ_t) √α_t) ε (book eqs. 13.72-13.73)."""
    alpha, alpha_bar = schedule.alpha, schedule.alpha_bar
    of_noise = (1 - alpha) / ((1 - alpha_bar) * alpha).sqrt()
    return spread(alpha.rsqrt(), t, x) * x - spread(of_noise, t, x) * noise


def noise_from_mean(
    schedule: Schedule,
    x: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    mean: Float[Tensor, "batch *event"],
) -> Float[Tensor, "batch *event"]:
    """ε = √(1 − ᾱ_t) (x_t − √α_t μ) / (1 − α_t), the inverse of `mean_from_noise` (book eq. 13.72)."""
    alpha, alpha_bar = schedule.alpha, schedule.alpha_bar
    return (x - spread(alpha.sqrt(), t, x) * mean) * spread((1 - alpha_bar).sqrt() / (1 - alpha), t, x)


def score_from_noise(
    schedule: Schedule, t: Int[Tensor, " batch"], noise: Float[Tensor, "batch *event"]
) -> Float[Tensor, "batch *event"]:
    """∇ log q(x_t) = −ε / √(1 − ᾱ_t), what the score has to do with noise (book sec. 13.3)."""
    return -noise * spread((1 - schedule.alpha_bar).rsqrt(), t, noise)


def noise_from_score(
    schedule: Schedule, t: Int[Tensor, " batch"], score: Float[Tensor, "batch *event"]
) -> Float[Tensor, "batch *event"]:
    """ε = −√(1 − ᾱ_t) ∇ log q(x_t), the inverse of `score_from_noise` (book sec. 13.3)."""
    return -score * spread((1 - schedule.alpha_bar).sqrt(), t, score)
