"""DPM-Solver++(2M) and DDIM inversion against diffusers' schedulers with the same model."""

from typing import Any

import pytest
import torch
from torch import Tensor

from parnassus.diffusion import (
    cosine_schedule,
    ddim_inversion_path,
    dpm_solver_path,
    evenly_spaced_steps,
    linear_schedule,
)
from parnassus.diffusion.chain.schedules import Schedule

diffusers = pytest.importorskip("diffusers")
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # within diffusers

STEPS = 1_000
SHAPE = (4, 1, 8, 8)


def model(x: Tensor, t: Tensor) -> Tensor:
    """An arbitrary smooth function of both arguments that keeps the states bounded."""
    return 0.9 * x + 0.3 * torch.tanh(x + torch.sin(t / 50.0).reshape(-1, *[1] * (x.dim() - 1)))


def make_scheduler(name: str, schedule: Schedule, count: int, **options: object) -> Any:
    scheduler = getattr(diffusers, name)(
        num_train_timesteps=STEPS, trained_betas=(1 - schedule.alpha).tolist(), timestep_spacing="trailing", **options
    )
    scheduler.set_timesteps(count)
    return scheduler


@pytest.mark.parametrize("schedule", [linear_schedule(STEPS), cosine_schedule(STEPS)], ids=["linear", "cosine"])
@pytest.mark.parametrize("count", [2, 5, 10, 20, 50])
def test_dpm_solver_steps_match(schedule: Schedule, count: int) -> None:
    """All steps of the path from the same noise on the same grid."""
    torch.manual_seed(0)
    x = torch.randn(SHAPE, dtype=torch.float64)
    scheduler = make_scheduler("DPMSolverMultistepScheduler", schedule, count, final_sigmas_type="zero")
    grid = evenly_spaced_steps(STEPS, count)
    assert scheduler.timesteps.tolist() == grid.flip(0).tolist()
    states = list(dpm_solver_path(model, schedule, x, grid=grid))
    for step, state in zip(scheduler.timesteps, states[1:], strict=True):
        x = scheduler.step(model(x, step.repeat(len(x))), step, x).prev_sample
        torch.testing.assert_close(x, state, atol=2e-3, rtol=2e-3)  # diffusers stores its tables in float32


@pytest.mark.parametrize("count", [10, 50])
def test_ddim_inversion_matches(count: int) -> None:
    """From the second step on, both evaluate the model one stride before the step to be reached."""
    torch.manual_seed(0)
    schedule = linear_schedule(STEPS)
    x0 = torch.randn(SHAPE, dtype=torch.float64)
    scheduler = make_scheduler("DDIMInverseScheduler", schedule, count, clip_sample=False)
    grid = torch.as_tensor(scheduler.timesteps)
    states = list(ddim_inversion_path(model, schedule, x0, grid=grid))
    x = states[1]
    for index in range(1, count):
        expected = scheduler.step(model(x, grid[index - 1].repeat(len(x))), int(grid[index]), x).prev_sample
        torch.testing.assert_close(expected, states[index + 1], atol=1e-4, rtol=1e-3)
        x = states[index + 1]
