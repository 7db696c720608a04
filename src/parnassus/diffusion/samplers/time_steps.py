"""Time steps that a sampler visits, and the type of samplers."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.chain.forward_process import Denoiser
from parnassus.diffusion.chain.schedules import Schedule

Sampler: TypeAlias = Callable[[Denoiser, Schedule, Tensor], Tensor]
"""(denoiser, schedule, x_T) ↦ x_0; `ddpm`, `ddim`, `heun_sampler` and `dpm_solver` are samplers."""


def evenly_spaced_steps(steps: int, count: int) -> Int[Tensor, " count"]:
    """`count` evenly spaced time steps from 0 … steps − 1; the last one is always included."""
    if not 1 <= count <= steps:
        raise ValueError(f"count must lie between 1 and steps; got count={count}, steps={steps}")
    return torch.arange(1, count + 1) * steps // count - 1


def check_grid(grid: Int[Tensor, " kept"] | None, schedule: Schedule) -> Int[Tensor, " kept"]:
    """The grid, by default all steps; it must increase strictly within the chain."""
    if grid is None:
        return torch.arange(len(schedule), device=schedule.alpha.device)
    if not len(grid) or not bool((grid[1:] > grid[:-1]).all()) or grid[0] < 0 or grid[-1] >= len(schedule):
        raise ValueError(f"grid must increase strictly within 0 … {len(schedule) - 1}; got grid={grid.tolist()}")
    return grid


def time_steps(
    grid: Int[Tensor, " kept"] | None, schedule: Schedule, like: Float[Tensor, "count *event"]
) -> Int[Tensor, "kept count"]:
    """The steps of the grid, each repeated for all examples of `like` (a view), on its device."""
    steps = check_grid(grid, schedule).to(like.device, non_blocking=True)
    return steps[:, None].expand(-1, len(like))


def select_steps(
    grid: Int[Tensor, " kept"] | None, schedule: Schedule, like: Float[Tensor, "count *event"]
) -> tuple[Schedule, Int[Tensor, "kept count"]]:
    """The schedule restricted to the steps of the grid, and these steps for all examples."""
    return schedule.respace(check_grid(grid, schedule)), time_steps(grid, schedule, like)


def last_state(path: Iterator[Float[Tensor, "count *event"]]) -> Float[Tensor, "count *event"]:
    """The last state of a path, with one state in memory at a time."""
    for x in path:
        last = x
    return last
