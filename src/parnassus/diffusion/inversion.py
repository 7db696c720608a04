"""DDIM backwards: an image stored as the noise that leads to it (book sec. 13.2.8)."""

from collections.abc import Iterator

from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.process import Denoiser
from parnassus.diffusion.samplers import ddim, ddim_factors, kept_steps, last_state
from parnassus.diffusion.schedules import Schedule


def encode_path(
    denoiser: Denoiser,
    schedule: Schedule,
    x0: Float[Tensor, "count *event"],
    *,
    grid: Int[Tensor, " kept"] | None = None,
    corrections: int = 0,
) -> Iterator[Float[Tensor, "count *event"]]:
    """x_0, then the states at the steps of `grid` (all by default), up to the noise x_T (book sec. 13.2.8).

        DDIM's step  x_s = √(ᾱ_s/ᾱ_t) x_t + c ε(x_t, t)  solved for x_t, with ε(x_s, s) in place of ε(x_t, t)

    The two differ by as much as ε changes in a step, so many steps come back better than few. Each of the
    `corrections` asks again at the x_t just found: nearer to the exact solution, one more call a step.
    """
    if corrections < 0:
        raise ValueError(f"corrections must be 0 or more; got corrections={corrections}")
    kept, times = kept_steps(grid, schedule, x0)
    of_x, of_noise = ddim_factors(kept.alpha_bar_before, kept.alpha_bar)
    x = x0
    yield x
    for index in range(len(kept)):
        noise = denoiser(x, times[max(index - 1, 0)])  # clean data have no step of their own
        for _ in range(corrections):
            noise = denoiser(of_x[index] * x + of_noise[index] * noise, times[index])
        x = of_x[index] * x + of_noise[index] * noise
        yield x


def encode(
    denoiser: Denoiser,
    schedule: Schedule,
    x0: Float[Tensor, "count *event"],
    *,
    grid: Int[Tensor, " kept"] | None = None,
    corrections: int = 0,
) -> Float[Tensor, "count *event"]:
    """The noise x_T from which DDIM draws x_0: a code as large as the data (book sec. 13.2.8)."""
    return last_state(encode_path(denoiser, schedule, x0, grid=grid, corrections=corrections))


def reconstruct(
    denoiser: Denoiser,
    schedule: Schedule,
    x0: Float[Tensor, "count *event"],
    *,
    grid: Int[Tensor, " kept"] | None = None,
    corrections: int = 0,
) -> Float[Tensor, "count *event"]:
    """x_0 encoded and drawn again by DDIM over the same steps (book sec. 13.2.8)."""
    code = encode(denoiser, schedule, x0, grid=grid, corrections=corrections)
    return ddim(denoiser, schedule, code, grid=grid)
