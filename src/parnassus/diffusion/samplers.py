"""Samplers: from noise back to data, with any denoiser ε(x_t, t) (book alg. 13.2, eq. 13.78).

Each comes twice: `ddpm` and `ddim` give x_0; `ddpm_path` and `ddim_path` yield every state on the way, noise first.
A step is a sum of x_t, ε and fresh noise, with factors worked out in float64 before the first: beside the network it
costs nothing. Code counts t from 0, the book from 1.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.process import Denoiser, noise_from_x0, posterior_variance, spread
from parnassus.diffusion.schedules import Schedule

Sampler: TypeAlias = Callable[[Denoiser, Schedule, Tensor], Tensor]


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
    of_x = alpha.rsqrt().tolist()
    of_noise = (-(1 - alpha) / ((1 - alpha_bar) * alpha).sqrt()).tolist()
    std = variance(schedule).sqrt().tolist()
    times = moments(None, schedule, start)
    x = start
    yield x
    for step in reversed(range(len(schedule))):
        x = of_x[step] * x + of_noise[step] * denoiser(x, times[step])
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
    """x_0 by ancestral sampling through all steps of the schedule (book alg. 13.2)."""
    return last_state(ddpm_path(denoiser, schedule, start, variance=variance))


def ddim_path(
    denoiser: Denoiser,
    schedule: Schedule,
    start: Float[Tensor, "count *event"],
    *,
    grid: Int[Tensor, " kept"] | None = None,
    eta: float = 0.0,
) -> Iterator[Float[Tensor, "count *event"]]:
    """States at the steps of `grid` (all by default), last one first, then x_0 (book eq. 13.78).

        x_s = √ᾱ_s x̂_0 + √(1 − ᾱ_s − σ²) ε_θ(x_t, t) + σ z,   x̂_0 = (x_t − √(1 − ᾱ_t) ε_θ) / √ᾱ_t

    where s is the kept step before t, and ᾱ_s = 1 before the first: the path ends in x̂_0. `start` is the state at the
    last kept step. σ = eta · √Σ_q of the kept chain: 0 is deterministic, 1 is DDPM.
    """
    kept, times = kept_steps(grid, schedule, start)
    variance = ddim_variance(kept, eta=eta)
    of_x, of_noise = ddim_factors(kept.alpha_bar, kept.alpha_bar_before, variance)
    std = variance.sqrt().tolist()
    x = start
    yield x
    for index in reversed(range(len(kept))):
        x = of_x[index] * x + of_noise[index] * denoiser(x, times[index])
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
    """x_0 through the steps of `grid` only, a function of `start` alone where eta is 0 (book eq. 13.78)."""
    return last_state(ddim_path(denoiser, schedule, start, grid=grid, eta=eta))


def ddim_factors(
    alpha_bar: Float[Tensor, " steps"], aim: Float[Tensor, " steps"], variance: Float[Tensor, " steps"] | float = 0.0
) -> tuple[list[float], list[float]]:
    """Factors a and b of the steps x_s = a x_t + b ε(x_t, t) + σ z from ᾱ_t to the `aim` ᾱ_s (book eq. 13.78).

    a = √(ᾱ_s / ᾱ_t),   b = √(1 − ᾱ_s − σ²) − a √(1 − ᾱ_t)
    """
    of_x = (aim / alpha_bar).sqrt()
    of_noise = (1 - aim - variance).clamp(min=0).sqrt() - of_x * (1 - alpha_bar).sqrt()
    return of_x.tolist(), of_noise.tolist()


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
    """The mean of q_σ(x_{t−1} | x_t, x_0), one for each admissible σ_t² ≤ 1 − ᾱ_{t−1} (book sec. 13.2.5).

    √ᾱ_{t−1} x_0 + √(1 − ᾱ_{t−1} − σ_t²) (x_t − √ᾱ_t x_0) / √(1 − ᾱ_t)
    """
    before = schedule.alpha_bar_before
    noise = noise_from_x0(schedule, x, t, x0)
    return spread(before.sqrt(), t, x) * x0 + spread((1 - before - variance).sqrt(), t, x) * noise


def even_grid(steps: int, count: int) -> Int[Tensor, " count"]:
    """`count` of the time steps 0 … steps − 1, as evenly spaced as integers can be; the last is always among them."""
    if not 1 <= count <= steps:
        raise ValueError(f"count must lie between 1 and steps; got count={count}, steps={steps}")
    return torch.arange(1, count + 1) * steps // count - 1


def slerp(start: Float[Tensor, "*batch d"], end: Float[Tensor, "*batch d"], share: float) -> Float[Tensor, "*batch d"]:
    """The point at `share` of the great arc from start to end: noise in between stays as long as noise is.

    direction = (sin((1 − s) θ) u + sin(s θ) v) / sin θ,   length = (1 − s) ‖start‖ + s ‖end‖

    where u and v are the unit vectors of both ends and θ the angle between them.
    """
    length_u, length_v = (torch.linalg.vector_norm(x, dim=-1, keepdim=True) for x in (start, end))
    u, v = start / length_u, end / length_v
    theta = (u * v).sum(-1, keepdim=True).clamp(-1, 1).arccos()
    straight = (1 - share) * u + share * v  # the limit where the angle vanishes
    arc = (((1 - share) * theta).sin() * u + (share * theta).sin() * v) / theta.sin()
    direction = torch.where(theta > 1e-4, arc, straight)
    length: Tensor = (1 - share) * length_u + share * length_v
    return length * direction


def checked_grid(grid: Int[Tensor, " kept"] | None, schedule: Schedule) -> Int[Tensor, " kept"]:
    """The grid, all steps where none is given; refused unless it rises within the chain."""
    if grid is None:
        return torch.arange(len(schedule))
    if not len(grid) or not bool((grid[1:] > grid[:-1]).all()) or grid[0] < 0 or grid[-1] >= len(schedule):
        raise ValueError(f"grid must rise within 0 … {len(schedule) - 1}; got grid={grid.tolist()}")
    return grid


def moments(
    grid: Int[Tensor, " kept"] | None, schedule: Schedule, like: Float[Tensor, "count *event"]
) -> Int[Tensor, "kept count"]:
    """The steps of the grid, each for all examples of `like` at once: views of one small tensor on its device."""
    steps = checked_grid(grid, schedule).to(like.device, non_blocking=True)
    return steps[:, None].expand(-1, len(like))


def kept_steps(
    grid: Int[Tensor, " kept"] | None, schedule: Schedule, like: Float[Tensor, "count *event"]
) -> tuple[Schedule, Int[Tensor, "kept count"]]:
    """The schedule of the steps of the grid alone, and its moments."""
    return schedule.keep(checked_grid(grid, schedule)), moments(grid, schedule, like)


def last_state(path: Iterator[Float[Tensor, "count *event"]]) -> Float[Tensor, "count *event"]:
    """The end of a path, one state in memory at a time."""
    for x in path:
        last = x
    return last
