"""Solvers of second order for the ordinary differential equation that DDIM follows (book sec. 13.2.5).

With √ᾱ_t = cos φ_t it reads dx/dφ = v, where v = (ε(x, t) − sin φ x) / cos φ is the velocity of `predictions`.
DDIM goes along the circle through x_t with that velocity. Both solvers ask at the steps of their grid only.
"""

from collections.abc import Iterator
from math import cos, sin, tan

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.process import Denoiser
from parnassus.diffusion.samplers import kept_steps, last_state
from parnassus.diffusion.schedules import Schedule


def heun_path(
    denoiser: Denoiser,
    schedule: Schedule,
    start: Float[Tensor, "count *event"],
    *,
    grid: Int[Tensor, " kept"] | None = None,
) -> Iterator[Float[Tensor, "count *event"]]:
    """States at the steps of `grid` (all by default), last one first, then x_0, by Heun's method (Karras et al. 2022).

        trial = cos δ x_t + sin δ v(x_t, t)                     δ = φ_s − φ_t: DDIM's step
        x_s   = x_t + tan(δ/2) (v(x_t, t) + v(trial, s))        the mean of both velocities, exact on a circle

    The last step, where no noise is left to be asked for, is DDIM's. n kept steps take 2n − 1 calls of the denoiser.
    """
    kept, times = kept_steps(grid, schedule, start)
    angle = torch.atan2((1 - kept.alpha_bar).sqrt(), kept.alpha_bar.sqrt()).tolist()

    def velocity(x: Tensor, index: int) -> Tensor:
        return (denoiser(x, times[index]) - sin(angle[index]) * x) / cos(angle[index])

    x = start
    yield x
    for index in reversed(range(1, len(kept))):
        turn = angle[index - 1] - angle[index]
        v = velocity(x, index)
        trial = cos(turn) * x + sin(turn) * v
        x = x + tan(turn / 2) * (v + velocity(trial, index - 1))
        yield x
    yield cos(angle[0]) * x - sin(angle[0]) * velocity(x, 0)


def heun(
    denoiser: Denoiser,
    schedule: Schedule,
    start: Float[Tensor, "count *event"],
    *,
    grid: Int[Tensor, " kept"] | None = None,
) -> Float[Tensor, "count *event"]:
    """x_0 by Heun's method, with an error that falls as 1 / steps² (Karras et al. 2022)."""
    return last_state(heun_path(denoiser, schedule, start, grid=grid))


def dpm_path(
    denoiser: Denoiser,
    schedule: Schedule,
    start: Float[Tensor, "count *event"],
    *,
    grid: Int[Tensor, " kept"] | None = None,
) -> Iterator[Float[Tensor, "count *event"]]:
    """The same states by DPM-Solver++(2M), which remembers the guess before (Lu et al. 2022).

        x_s = √((1 − ᾱ_s)/(1 − ᾱ_t)) x_t + √ᾱ_s (1 − e⁻ʰ) D,   D = x̂_0 + h/(2 h′) (x̂_0 − x̂_0′)

    where λ = log(√ᾱ / √(1 − ᾱ)), h = λ_s − λ_t, and h′, x̂_0′ belong to the step before. The first step and the last,
    with D = x̂_0, are DDIM's. n kept steps take n calls of the denoiser.
    """
    kept, times = kept_steps(grid, schedule, start)
    signal, level = kept.alpha_bar.sqrt().tolist(), (1 - kept.alpha_bar).sqrt().tolist()
    log_ratio = (kept.snr.log() / 2).tolist()  # λ
    x, guess_before = start, start
    yield x
    for index in reversed(range(len(kept))):
        guess = (x - level[index] * denoiser(x, times[index])) / signal[index]
        if index == 0:
            yield guess
            return
        aim, h = guess, log_ratio[index - 1] - log_ratio[index]
        if index < len(kept) - 1:
            aim = guess + h / (log_ratio[index] - log_ratio[index + 1]) / 2 * (guess - guess_before)
        shrink = level[index - 1] / level[index]
        # √ᾱ_s (1 − e⁻ʰ) = √ᾱ_s − √(1 − ᾱ_s) √ᾱ_t / √(1 − ᾱ_t)
        x = shrink * x + (signal[index - 1] - shrink * signal[index]) * aim
        guess_before = guess
        yield x


def dpm(
    denoiser: Denoiser,
    schedule: Schedule,
    start: Float[Tensor, "count *event"],
    *,
    grid: Int[Tensor, " kept"] | None = None,
) -> Float[Tensor, "count *event"]:
    """x_0 by DPM-Solver++(2M): second order at one call a step (Lu et al. 2022)."""
    return last_state(dpm_path(denoiser, schedule, start, grid=grid))
