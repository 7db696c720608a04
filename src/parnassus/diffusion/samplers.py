"""Samplers: from noise back to data, with any denoiser ε(x_t, t) (book alg. 13.2, eq. 13.78).

Each comes twice: `ddpm` and `ddim` give x_0; `ddpm_path` and `ddim_path` yield every state on the way, noise first.
Code counts t from 0, the book from 1.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.process import (
    Denoiser,
    mean_from_noise,
    noise_from_x0,
    posterior_variance,
    spread,
    x0_from_noise,
)
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
    std = variance(schedule).sqrt().tolist()
    x = start
    yield x
    for step in reversed(range(len(schedule))):
        t = _everywhere(step, x)
        x = mean_from_noise(schedule, x, t, denoiser(x, t))
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
    return _last(ddpm_path(denoiser, schedule, start, variance=variance))


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
    grid = _checked(torch.arange(len(schedule)) if grid is None else grid, schedule)
    before = schedule.keep(grid).alpha_bar_before.tolist()
    variance = ddim_variance(schedule.keep(grid), eta=eta).tolist()
    x = start
    yield x
    for index in reversed(range(len(grid))):
        t = _everywhere(int(grid[index]), x)
        noise = denoiser(x, t)
        x0 = x0_from_noise(schedule, x, t, noise)
        x = before[index] ** 0.5 * x0 + max(1 - before[index] - variance[index], 0.0) ** 0.5 * noise
        if variance[index] > 0:
            x = x + variance[index] ** 0.5 * torch.randn_like(x)
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
    return _last(ddim_path(denoiser, schedule, start, grid=grid, eta=eta))


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


def _checked(grid: Tensor, schedule: Schedule) -> Tensor:
    rising = bool((grid[1:] > grid[:-1]).all())
    if not len(grid) or not rising or grid[0] < 0 or grid[-1] >= len(schedule):
        raise ValueError(f"grid must rise within 0 … {len(schedule) - 1}; got grid={grid.tolist()}")
    return grid


def _everywhere(step: int, x: Tensor) -> Tensor:
    return torch.full((len(x),), step, device=x.device)


def _last(path: Iterator[Tensor]) -> Tensor:
    for x in path:  # one state at a time: a list would keep them all
        last = x
    return last
