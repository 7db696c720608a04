"""Our DPM-Solver++(2M) and DDIM backwards against diffusers' schedulers: same model, same numbers."""

from typing import Any

import pytest
import torch
from torch import Tensor

from parnassus.diffusion import cosine_schedule, ddim_inversion_path, dpm_solver_path, even_grid, linear_schedule
from parnassus.diffusion.chain.schedules import Schedule

diffusers = pytest.importorskip("diffusers")
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # within diffusers

STEPS = 1_000
SHAPE = (4, 1, 8, 8)


def model(x: Tensor, t: Tensor) -> Tensor:
    """Any smooth function of both arguments will do; this one keeps the states of moderate size."""
    return 0.9 * x + 0.3 * torch.tanh(x + torch.sin(t / 50.0).reshape(-1, *[1] * (x.dim() - 1)))


def theirs(name: str, schedule: Schedule, count: int, **options: object) -> Any:
    made = getattr(diffusers, name)(
        num_train_timesteps=STEPS, trained_betas=(1 - schedule.alpha).tolist(), timestep_spacing="trailing", **options
    )
    made.set_timesteps(count)
    return made


@pytest.mark.parametrize("schedule", [linear_schedule(STEPS), cosine_schedule(STEPS)], ids=["linear", "cosine"])
@pytest.mark.parametrize("count", [2, 5, 10, 20, 50])
def test_dpm_solver_steps_agree(schedule: Schedule, count: int) -> None:
    """The whole path from the same noise, step by step, over the same time steps."""
    torch.manual_seed(0)
    x = torch.randn(SHAPE, dtype=torch.float64)
    scheduler = theirs("DPMSolverMultistepScheduler", schedule, count, final_sigmas_type="zero")
    grid = even_grid(STEPS, count)
    assert scheduler.timesteps.tolist() == grid.flip(0).tolist()
    states = list(dpm_solver_path(model, schedule, x, grid=grid))
    for step, state in zip(scheduler.timesteps, states[1:], strict=True):
        x = scheduler.step(model(x, step.repeat(len(x))), step, x).prev_sample
        torch.testing.assert_close(x, state, atol=2e-3, rtol=2e-3)  # theirs keeps its tables in float32


@pytest.mark.parametrize("count", [10, 50])
def test_ddim_backwards_agrees(count: int) -> None:
    """Theirs asks at the step it is about to reach less a stride, as ours does, from the second step on."""
    torch.manual_seed(0)
    schedule = linear_schedule(STEPS)
    x0 = torch.randn(SHAPE, dtype=torch.float64)
    scheduler = theirs("DDIMInverseScheduler", schedule, count, clip_sample=False)
    grid = torch.as_tensor(scheduler.timesteps)
    states = list(ddim_inversion_path(model, schedule, x0, grid=grid))
    x = states[1]
    for index in range(1, count):
        found = scheduler.step(model(x, grid[index - 1].repeat(len(x))), int(grid[index]), x).prev_sample
        torch.testing.assert_close(found, states[index + 1], atol=1e-4, rtol=1e-3)
        x = states[index + 1]
