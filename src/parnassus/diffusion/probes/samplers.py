"""Samplers side by side: the ways of one noise with equally many calls of an exact denoiser (book sec. 13.2.5)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.diffusion.oracles import MixtureOracle
from parnassus.diffusion.samplers import ddim_path, even_grid
from parnassus.diffusion.schedules import cosine_schedule
from parnassus.diffusion.solvers import dpm_path, heun_path
from parnassus.touch import Answer, Bars, Numbers, Path, Plane, Point, Whole

CHAIN, REACH, FINE = 200, 3.0, 61
MEANS = torch.tensor([[-1.5, -1.0], [1.5, -1.0], [0.0, 1.6]], dtype=torch.float64)
ORACLE = MixtureOracle(cosine_schedule(CHAIN), MEANS, torch.full((3,), 0.25, dtype=torch.float64))


def _plane() -> Plane:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        points, _ = ORACLE.draw(300)
    return Plane((-REACH, REACH), (-REACH, REACH), points.float(), across_name="x₁", up_name="x₂")


@probe()
@torch.no_grad()
def race_the_samplers(
    start: Annotated[tuple[float, float], Point("the noise to start from", _plane())] = (0.6, -0.2),
    calls: Annotated[int, Whole("calls of the denoiser", 1, 40)] = 9,
    seed: Annotated[int, Whole("fresh noise of DDPM", 0, 99)] = 0,
) -> list[Answer]:
    """Four samplers lead one noise to the data, with equally many calls of the denoiser (book sec. 13.2.5).

    The denoiser is exact, so whatever goes wrong is the sampler's doing. Begin with 40 calls: three ways agree. Take
    calls away and see which way leaves the exact one first. Starts near a border between two ends are the hardest.
    """
    schedule = ORACLE.schedule
    noise = torch.tensor([start], dtype=torch.float64)
    grid = even_grid(CHAIN, calls)
    exact = _way(list(heun_path(ORACLE, schedule, noise)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random = _way(list(ddim_path(ORACLE, schedule, noise, grid=grid, eta=1.0)))
    ways = {
        "the exact way": exact,
        "DDIM": _way(list(ddim_path(ORACLE, schedule, noise, grid=grid))),
        "Heun": _way(list(heun_path(ORACLE, schedule, noise, grid=even_grid(CHAIN, (calls + 1) // 2)))),
        "DPM-Solver++": _way(list(dpm_path(ORACLE, schedule, noise, grid=grid))),
        "DDPM": random,
    }
    off = {name: float((way[-1] - exact[-1]).norm()) for name, way in ways.items() if name != "the exact way"}
    line = torch.linspace(-REACH, REACH, FINE, dtype=torch.float64)
    up, across = torch.meshgrid(line, line, indexing="ij")
    level = torch.zeros(FINE * FINE, dtype=torch.long)
    density = ORACLE.log_prob(torch.stack([across, up], -1).reshape(-1, 2), level).exp().view(FINE, FINE)
    numbers: dict[str, float | str] = {
        "calls of DDIM, DPM-Solver++ and DDPM": float(calls),
        "calls of Heun, two a step but the last": 2.0 * ((calls + 1) // 2) - 1,
        "end of the exact way": f"({float(exact[-1, 0]):.2f}, {float(exact[-1, 1]):.2f})",
    }
    return [
        Path(
            "From noise to data", ways, line.float(), line.float(), density.float(), about="Levels: the data's density."
        ),
        Bars("How far from the exact end", list(off), torch.tensor(list(off.values()))),
        Numbers("In numbers", numbers, about="DDPM is random and has no exact end: its bar says how far noise led it."),
    ]


def _way(states: list[Tensor]) -> Tensor:
    """The states of one point as a path in the plane."""
    return torch.cat(states).float()
