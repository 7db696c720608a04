"""The DDPM sampler: ancestral sampling over all steps of the chain (book alg. 13.2).

Factors are computed in float64 before the first step. Code counts t from 0, the book from 1.
"""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.diffusion.chain.forward_process import Denoiser
from parnassus.diffusion.chain.gaussian_posterior import posterior_variance
from parnassus.diffusion.chain.schedules import Schedule
from parnassus.diffusion.samplers.time_steps import last_state, time_steps


def ddpm_path(
    denoiser: Denoiser,
    schedule: Schedule,
    start: Float[Tensor, "count *event"],
    *,
    variance: Callable[[Schedule], Tensor] = posterior_variance,
) -> Iterator[Float[Tensor, "count *event"]]:
    """x_T, x_{T−1}, …, x_0 by ancestral sampling (book alg. 13.2; its line 4 misses a bar and a root).

    x_{t−1} = (x_t − (1 − α_t)/√(1 − ᾱ_t) ε_θ(x_t, t)) / √α_t + √Σ(t) z,   no noise z in the last step
    """
    alpha, alpha_bar = schedule.alpha, schedule.alpha_bar
    x_factor = alpha.rsqrt().tolist()
    noise_factor = (-(1 - alpha) / ((1 - alpha_bar) * alpha).sqrt()).tolist()
    std = variance(schedule).sqrt().tolist()
    times = time_steps(None, schedule, start)
    x = start
    yield x
    for step in reversed(range(len(schedule))):
        x = x_factor[step] * x + noise_factor[step] * denoiser(x, times[step])
        if step > 0:
            x = x + std[step] * torch.randn_like(x)
        yield x


def ddpm(
    denoiser: Denoiser,
    schedule: Schedule,
    start: Float[Tensor, "count *event"],
    *,
    variance: Callable[[Schedule], Tensor] = posterior_variance,
) -> Float[Tensor, "count *event"]:
    """x_0 by ancestral sampling over all steps of the schedule (book alg. 13.2)."""
    return last_state(ddpm_path(denoiser, schedule, start, variance=variance))
