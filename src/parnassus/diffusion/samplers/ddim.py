"""The DDIM sampler over any subset of the steps (book sec. 13.2.5, eq. 13.78).

Factors are computed in float64 before the first step. Code counts t from 0, the book from 1.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.chain.forward_process import Denoiser, extract
from parnassus.diffusion.chain.predictions import noise_from_x0
from parnassus.diffusion.chain.schedules import Schedule
from parnassus.diffusion.samplers.time_steps import last_state, select_steps


def ddim_path(
    denoiser: Denoiser,
    schedule: Schedule,
    start: Float[Tensor, "count *event"],
    *,
    grid: Int[Tensor, " kept"] | None = None,
    eta: float = 0.0,
) -> Iterator[Float[Tensor, "count *event"]]:
    """States at the steps of `grid` (by default all), in reverse order, then x_0 (book eq. 13.78).

        x_s = √ᾱ_s x̂_0 + √(1 − ᾱ_s − σ²) ε_θ(x_t, t) + σ z,   x̂_0 = (x_t − √(1 − ᾱ_t) ε_θ) / √ᾱ_t

    where s is the step of the grid before t, and ᾱ_s = 1 before the first: the path ends in x̂_0. `start` is the state
    at the last step of the grid. σ = eta · √Σ_q of the respaced chain: 0 is deterministic, 1 is DDPM.
    """
    respaced, times = select_steps(grid, schedule, start)
    variance = ddim_variance(respaced, eta=eta)
    x_factor, noise_factor = ddim_factors(respaced.alpha_bar, respaced.alpha_bar_before, variance)
    std = variance.sqrt().tolist()
    x = start
    yield x
    for index in reversed(range(len(respaced))):
        x = x_factor[index] * x + noise_factor[index] * denoiser(x, times[index])
        if std[index] > 0:
            x = x + std[index] * torch.randn_like(x)
        yield x


def ddim(
    denoiser: Denoiser,
    schedule: Schedule,
    start: Float[Tensor, "count *event"],
    *,
    grid: Int[Tensor, " kept"] | None = None,
    eta: float = 0.0,
) -> Float[Tensor, "count *event"]:
    """x_0 over the steps of `grid`, a deterministic function of `start` for eta = 0 (book eq. 13.78)."""
    return last_state(ddim_path(denoiser, schedule, start, grid=grid, eta=eta))


def ddim_factors(
    alpha_bar: Float[Tensor, " steps"], target: Float[Tensor, " steps"], variance: Float[Tensor, " steps"] | float = 0.0
) -> tuple[list[float], list[float]]:
    """Factors a and b of the steps x_s = a x_t + b ε(x_t, t) + σ z (book eq. 13.78), with `target` ᾱ_s.

    a = √(ᾱ_s / ᾱ_t),   b = √(1 − ᾱ_s − σ²) − a √(1 − ᾱ_t)
    """
    x_factor = (target / alpha_bar).sqrt()
    noise_factor = (1 - target - variance).clamp(min=0).sqrt() - x_factor * (1 - alpha_bar).sqrt()
    return x_factor.tolist(), noise_factor.tolist()


def ddim_variance(schedule: Schedule, *, eta: float = 1.0) -> Float[Tensor, " steps"]:
    """σ_t² = η² (1 − ᾱ_{t−1}) / (1 − ᾱ_t) · (1 − ᾱ_t / ᾱ_{t−1}) (book sec. 13.2.5, where α means ᾱ).

    At η = 1 this is Σ_q(t). Every eta in [0, 1] is admissible: σ_t² ≤ 1 − ᾱ_{t−1}.
    """
    if not 0 <= eta <= 1:
        raise ValueError(f"eta must lie between 0 (deterministic) and 1 (DDPM); got eta={eta}")
    after, before = schedule.alpha_bar, schedule.alpha_bar_before
    return eta**2 * (1 - before) / (1 - after) * (1 - after / before)


def ddim_posterior_mean(
    schedule: Schedule,
    x: Float[Tensor, "batch *event"],
    x0: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    variance: Float[Tensor, " steps"],
) -> Float[Tensor, "batch *event"]:
    """The mean of q_σ(x_{t−1} | x_t, x_0), for any admissible σ_t² ≤ 1 − ᾱ_{t−1} (book sec. 13.2.5).

    √ᾱ_{t−1} x_0 + √(1 − ᾱ_{t−1} − σ_t²) (x_t − √ᾱ_t x_0) / √(1 − ᾱ_t)
    """
    before = schedule.alpha_bar_before
    noise = noise_from_x0(schedule, x, t, x0)
    return extract(before.sqrt(), t, x) * x0 + extract((1 - before - variance).sqrt(), t, x) * noise
