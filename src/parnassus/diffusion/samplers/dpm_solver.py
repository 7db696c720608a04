"""DPM-Solver++(2M), a multistep solver of second order for DDIM's equation (Lu et al. 2022)."""

from collections.abc import Iterator

from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.chain.forward_process import Denoiser
from parnassus.diffusion.chain.schedules import Schedule
from parnassus.diffusion.samplers.time_steps import last_state, select_steps


def dpm_solver_path(
    denoiser: Denoiser,
    schedule: Schedule,
    start: Float[Tensor, "count *event"],
    *,
    grid: Int[Tensor, " kept"] | None = None,
) -> Iterator[Float[Tensor, "count *event"]]:
    """States at the steps of `grid` (by default all), in reverse order, then x_0 (Lu et al. 2022).

        x_s = √((1 − ᾱ_s)/(1 − ᾱ_t)) x_t + √ᾱ_s (1 − e⁻ʰ) D,   D = x̂_0 + h/(2 h′) (x̂_0 − x̂_0′)

    where λ = log(√ᾱ / √(1 − ᾱ)), h = λ_s − λ_t, and h′, x̂_0′ belong to the previous step. The first step and the last,
    with D = x̂_0, are those of DDIM. n steps take n calls of the denoiser.
    """
    respaced, times = select_steps(grid, schedule, start)
    signal, level = respaced.alpha_bar.sqrt().tolist(), (1 - respaced.alpha_bar).sqrt().tolist()
    log_ratio = (respaced.snr.log() / 2).tolist()  # λ
    x, previous_x0 = start, start
    yield x
    for index in reversed(range(len(respaced))):
        x0 = (x - level[index] * denoiser(x, times[index])) / signal[index]
        if index == 0:
            yield x0
            return
        direction, h = x0, log_ratio[index - 1] - log_ratio[index]
        if index < len(respaced) - 1:
            direction = x0 + h / (log_ratio[index] - log_ratio[index + 1]) / 2 * (x0 - previous_x0)
        ratio = level[index - 1] / level[index]
        # √ᾱ_s (1 − e⁻ʰ) = √ᾱ_s − √(1 − ᾱ_s) √ᾱ_t / √(1 − ᾱ_t)
        x = ratio * x + (signal[index - 1] - ratio * signal[index]) * direction
        previous_x0 = x0
        yield x


def dpm_solver(
    denoiser: Denoiser,
    schedule: Schedule,
    start: Float[Tensor, "count *event"],
    *,
    grid: Int[Tensor, " kept"] | None = None,
) -> Float[Tensor, "count *event"]:
    """x_0 by DPM-Solver++(2M), of second order with one call per step (Lu et al. 2022)."""
    return last_state(dpm_solver_path(denoiser, schedule, start, grid=grid))
