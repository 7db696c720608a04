"""Probe comparing samplers at equal numbers of calls of an exact denoiser (book sec. 13.2.5)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.diffusion.chain.exact_denoisers import MixtureDenoiser
from parnassus.diffusion.chain.schedules import cosine_schedule
from parnassus.diffusion.samplers.ddim import ddim_path
from parnassus.diffusion.samplers.dpm_solver import dpm_solver_path
from parnassus.diffusion.samplers.heun import heun_path
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps
from parnassus.widgets import Answer, Bars, IntSlider, Numbers, Plane, PointPicker, Trajectories

TIMESTEPS, LIMIT, GRID_SIZE = 200, 3.0, 61
MEANS = torch.tensor([[-1.5, -1.0], [1.5, -1.0], [0.0, 1.6]], dtype=torch.float64)
DENOISER = MixtureDenoiser(cosine_schedule(TIMESTEPS), MEANS, torch.full((3,), 0.25, dtype=torch.float64))


def _plane() -> Plane:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        points, _ = DENOISER.sample(300)
    return Plane((-LIMIT, LIMIT), (-LIMIT, LIMIT), points.float(), x_label="x₁", y_label="x₂")


@probe()
@torch.no_grad()
def compare_samplers(
    start: Annotated[tuple[float, float], PointPicker("initial noise x_T", _plane())] = (0.6, -0.2),
    calls: Annotated[int, IntSlider("calls of the denoiser", 1, 40)] = 9,
    seed: Annotated[int, IntSlider("seed of the noise of DDPM", 0, 99)] = 0,
) -> list[Answer]:
    """Trajectories of four samplers from one start, at equal numbers of denoiser calls (book sec. 13.2.5).

    The denoiser is exact, so all errors are discretisation errors. With 40 calls the deterministic samplers agree;
    reduce the number of calls to see their errors. Starts near a border between two modes are the hardest.
    """
    schedule = DENOISER.schedule
    noise = torch.tensor([start], dtype=torch.float64)
    grid = evenly_spaced_steps(TIMESTEPS, calls)
    exact = _trajectory(list(heun_path(DENOISER, schedule, noise)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random = _trajectory(list(ddim_path(DENOISER, schedule, noise, grid=grid, eta=1.0)))
    trajectories = {
        "exact": exact,
        "DDIM": _trajectory(list(ddim_path(DENOISER, schedule, noise, grid=grid))),
        "Heun": _trajectory(
            list(heun_path(DENOISER, schedule, noise, grid=evenly_spaced_steps(TIMESTEPS, (calls + 1) // 2)))
        ),
        "DPM-Solver++": _trajectory(list(dpm_solver_path(DENOISER, schedule, noise, grid=grid))),
        "DDPM": random,
    }
    deviations = {name: float((path[-1] - exact[-1]).norm()) for name, path in trajectories.items() if name != "exact"}
    line = torch.linspace(-LIMIT, LIMIT, GRID_SIZE, dtype=torch.float64)
    x2, x1 = torch.meshgrid(line, line, indexing="ij")
    level = torch.zeros(GRID_SIZE * GRID_SIZE, dtype=torch.long)
    density = DENOISER.log_prob(torch.stack([x1, x2], -1).reshape(-1, 2), level).exp().view(GRID_SIZE, GRID_SIZE)
    numbers: dict[str, float | str] = {
        "calls of DDIM, DPM-Solver++ and DDPM": float(calls),
        "calls of Heun, two per step except the last": 2.0 * ((calls + 1) // 2) - 1,
        "end of the exact trajectory": f"({float(exact[-1, 0]):.2f}, {float(exact[-1, 1]):.2f})",
    }
    return [
        Trajectories(
            "From noise to data",
            trajectories,
            line.float(),
            line.float(),
            density.float(),
            about="Level lines: density of the data.",
        ),
        Bars("Distance to the exact end", list(deviations), torch.tensor(list(deviations.values()))),
        Numbers("Calls", numbers, about="DDPM is stochastic and does not converge to the exact end."),
    ]


def _trajectory(states: list[Tensor]) -> Tensor:
    """The states of one point as a trajectory in the plane."""
    return torch.cat(states).float()
