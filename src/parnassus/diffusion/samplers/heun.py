"""Heun's method for the differential equation of DDIM (Karras et al. 2022; book sec. 13.2.5).

With √ᾱ_t = cos φ_t the equation is dx/dφ = v with the velocity v = (ε(x, t) − sin φ x) / cos φ of `predictions`;
a DDIM step follows the circle through x_t with that velocity. The denoiser is called at steps of the grid only.
"""

from collections.abc import Iterator
from math import cos, sin, tan

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.chain.forward_process import Denoiser
from parnassus.diffusion.chain.schedules import Schedule
from parnassus.diffusion.samplers.time_steps import last_state, select_steps


def heun_path(
    denoiser: Denoiser,
    schedule: Schedule,
    start: Float[Tensor, "count *event"],
    *,
    grid: Int[Tensor, " kept"] | None = None,
) -> Iterator[Float[Tensor, "count *event"]]:
    """States at the steps of `grid` (by default all), in reverse order, then x_0 (Karras et al. 2022).

        trial = cos δ x_t + sin δ v(x_t, t)                     δ = φ_s − φ_t: a DDIM step
        x_s   = x_t + tan(δ/2) (v(x_t, t) + v(trial, s))        mean of both velocities, exact on a circle

    The last step is a DDIM step. n steps take 2n − 1 calls of the denoiser.
    """
    respaced, times = select_steps(grid, schedule, start)
    angle = torch.atan2((1 - respaced.alpha_bar).sqrt(), respaced.alpha_bar.sqrt()).tolist()

    def velocity(x: Tensor, index: int) -> Tensor:
        return (denoiser(x, times[index]) - sin(angle[index]) * x) / cos(angle[index])

    x = start
    yield x
    for index in reversed(range(1, len(respaced))):
        delta = angle[index - 1] - angle[index]
        v = velocity(x, index)
        trial = cos(delta) * x + sin(delta) * v
        x = x + tan(delta / 2) * (v + velocity(trial, index - 1))
        yield x
    yield cos(angle[0]) * x - sin(angle[0]) * velocity(x, 0)


def heun_sampler(
    denoiser: Denoiser,
    schedule: Schedule,
    start: Float[Tensor, "count *event"],
    *,
    grid: Int[Tensor, " kept"] | None = None,
) -> Float[Tensor, "count *event"]:
    """x_0 by Heun's method, of second order with two calls per step (Karras et al. 2022)."""
    return last_state(heun_path(denoiser, schedule, start, grid=grid))
