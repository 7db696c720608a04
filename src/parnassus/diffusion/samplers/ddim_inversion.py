"""DDIM inversion: the noise from which DDIM generates a given image (book sec. 13.2.8)."""

from collections.abc import Iterator

from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.chain.forward_process import Denoiser
from parnassus.diffusion.chain.schedules import Schedule
from parnassus.diffusion.samplers.ddim import ddim, ddim_factors
from parnassus.diffusion.samplers.time_steps import last_state, select_steps


def ddim_inversion_path(
    denoiser: Denoiser,
    schedule: Schedule,
    x0: Float[Tensor, "count *event"],
    *,
    grid: Int[Tensor, " kept"] | None = None,
    corrections: int = 0,
) -> Iterator[Float[Tensor, "count *event"]]:
    """x_0, then the states at the steps of `grid` (by default all), up to x_T (book sec. 13.2.8).

        the DDIM step  x_s = √(ᾱ_s/ᾱ_t) x_t + c ε(x_t, t)  solved for x_t, with ε(x_s, s) in place of ε(x_t, t)

    The error is the change of ε over a step, so it falls with the number of steps. Each of the `corrections` evaluates
    ε at the current estimate of x_t (a fixed-point iteration), one more call per step.
    """
    if corrections < 0:
        raise ValueError(f"corrections must be 0 or more; got corrections={corrections}")
    respaced, times = select_steps(grid, schedule, x0)
    x_factor, noise_factor = ddim_factors(respaced.alpha_bar_before, respaced.alpha_bar)
    x = x0
    yield x
    for index in range(len(respaced)):
        noise = denoiser(x, times[max(index - 1, 0)])  # clean data have no step
        for _ in range(corrections):
            noise = denoiser(x_factor[index] * x + noise_factor[index] * noise, times[index])
        x = x_factor[index] * x + noise_factor[index] * noise
        yield x


def ddim_inversion(
    denoiser: Denoiser,
    schedule: Schedule,
    x0: Float[Tensor, "count *event"],
    *,
    grid: Int[Tensor, " kept"] | None = None,
    corrections: int = 0,
) -> Float[Tensor, "count *event"]:
    """The noise x_T from which DDIM generates x_0, of the shape of the data (book sec. 13.2.8)."""
    return last_state(ddim_inversion_path(denoiser, schedule, x0, grid=grid, corrections=corrections))


def ddim_reconstruction(
    denoiser: Denoiser,
    schedule: Schedule,
    x0: Float[Tensor, "count *event"],
    *,
    grid: Int[Tensor, " kept"] | None = None,
    corrections: int = 0,
) -> Float[Tensor, "count *event"]:
    """x_0 after DDIM inversion and DDIM sampling over the same steps (book sec. 13.2.8)."""
    code = ddim_inversion(denoiser, schedule, x0, grid=grid, corrections=corrections)
    return ddim(denoiser, schedule, code, grid=grid)
