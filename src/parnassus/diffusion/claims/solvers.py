"""Claims about second-order solvers and DDIM inversion, with exact denoisers (book secs. 13.2.5, 13.2.8)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, less_equal, rate
from parnassus.diffusion.chain.exact_denoisers import MixtureDenoiser
from parnassus.diffusion.chain.schedules import Schedule, cosine_schedule, linear_schedule
from parnassus.diffusion.claims.exact_expectations import distances, two_modes
from parnassus.diffusion.guidance import clip_x0
from parnassus.diffusion.samplers.ddim import ddim
from parnassus.diffusion.samplers.ddim_inversion import ddim_inversion, ddim_reconstruction
from parnassus.diffusion.samplers.dpm_solver import dpm_solver
from parnassus.diffusion.samplers.heun import heun_sampler
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps

SOLVERS = {"ddim": ddim, "heun": heun_sampler, "dpm": dpm_solver}


@claim("B13.2.5-3")
def heun_and_dpm_solver_converge_with_second_order() -> Evidence:
    """The error decreases as 1/steps for DDIM and as 1/steps² for Heun and DPM-Solver++(2M)."""
    schedule = cosine_schedule(1_025)
    oracle = two_modes(schedule)
    torch.manual_seed(0)
    start = torch.randn(300, 1, dtype=torch.float64)
    reference = heun_sampler(oracle, schedule, start)
    steps = torch.tensor([32, 64, 128])
    grids = [
        torch.arange(0, 1_025, 1_024 // count) for count in steps.tolist()
    ]  # all contain the first step of the chain
    return all_of(
        ddim=rate(steps, distances(ddim, oracle, start, grids, reference), -1.0, atol=0.1),
        heun=rate(steps, distances(heun_sampler, oracle, start, grids, reference), -2.0, atol=0.2),
        dpm=rate(steps, distances(dpm_solver, oracle, start, grids, reference), -2.0, atol=0.2),
    )


@claim("B13.2.5-3")
def second_order_solvers_are_more_accurate_at_ten_evaluations() -> Evidence:
    """With about 10 evaluations of the denoiser the error of both solvers is at most 0.8 times that of DDIM."""
    schedule = cosine_schedule(1_000)
    oracle = two_modes(schedule)
    torch.manual_seed(0)
    start = torch.randn(1_000, 1, dtype=torch.float64)
    reference = heun_sampler(oracle, schedule, start)
    ddim_error, dpm_error, heun_error = (
        distances(sampler, oracle, start, [evenly_spaced_steps(1_000, steps)], reference)
        for sampler, steps in ((ddim, 10), (dpm_solver, 10), (heun_sampler, 5))
    )
    return all_of(dpm=less_equal(dpm_error / ddim_error, 0.8), heun=less_equal(heun_error / ddim_error, 0.8))


@claim("B13.2.5-2")
def every_solver_evaluates_the_steps_of_its_grid_only() -> Evidence:
    """On a grid of 5 steps DDIM and DPM-Solver++ evaluate the denoiser 5 times, Heun 9 times."""
    schedule, grid = linear_schedule(1_000), torch.tensor([3, 50, 51, 400, 998])
    oracle = two_modes(schedule)
    evaluations: dict[str, list[Tensor]] = {name: [] for name in SOLVERS}
    for name, sampler in SOLVERS.items():

        def record_step(x: Tensor, t: Tensor, calls: list[Tensor] = evaluations[name]) -> Tensor:
            calls.append(t[0])
            return oracle(x, t)

        sampler(record_step, schedule, torch.ones(1, 1, dtype=torch.float64), grid=grid)
    heun_steps = torch.tensor([998, 400, 400, 51, 51, 50, 50, 3, 3])
    return all_of(
        ddim=close(torch.stack(evaluations["ddim"]), grid.flip(0)),
        dpm=close(torch.stack(evaluations["dpm"]), grid.flip(0)),
        heun=close(torch.stack(evaluations["heun"]), heun_steps),
    )


@claim("B13.2.5-2")
def every_solver_is_exact_for_a_single_data_point() -> Evidence:
    """For a point mass the trajectories are straight: each solver is exact with 3 steps, with or without clipping."""
    parts = {}
    for kind, schedule in (("linear", linear_schedule(1_000)), ("cosine", cosine_schedule(1_000))):
        point = torch.tensor([[0.7, -0.3]], dtype=torch.float64)
        oracle = MixtureDenoiser(schedule, point, torch.zeros(1, dtype=torch.float64))
        torch.manual_seed(0)
        start = torch.randn(50, 2, dtype=torch.float64)
        for name, sampler in SOLVERS.items():
            grid = evenly_spaced_steps(1_000, 3)
            ends = torch.stack(
                [sampler(denoiser, schedule, start, grid=grid) for denoiser in (oracle, clip_x0(oracle, schedule))]
            )
            parts[f"{name}_{kind}"] = close(ends, point.expand(2, 50, 2), atol=1e-7)
    return all_of(**parts)


@claim("B13.2.8-3")
def ddim_inversion_reconstructs_the_data() -> Evidence:
    """The mean squared reconstruction error is below 0.006, 0.0015, 2e-5 with 50, 100, 1,000 steps: as 1/steps²."""
    schedule = linear_schedule(1_000)
    oracle = two_modes(schedule)
    torch.manual_seed(0)
    x0, _ = oracle.sample(1_000)
    errors = torch.stack([_reconstruction_error(oracle, schedule, x0, count) for count in (50, 100, 1_000)])
    return all_of(
        error=less_equal(errors, torch.tensor([0.006, 0.0015, 2e-5]).double()),
        order=rate(torch.tensor([50, 100, 1_000]), errors, -2.0, atol=0.25),
        at_10_steps=close(_reconstruction_error(oracle, schedule, x0, 10), 0.14, atol=0.04),
    )


@claim("B13.2.8-3")
def fixed_point_corrections_make_the_inversion_exact() -> Evidence:
    """Each fixed-point correction reduces the reconstruction error; after 20 of them it vanishes with 50 steps."""
    schedule = linear_schedule(1_000)
    oracle = two_modes(schedule)
    torch.manual_seed(0)
    x0, _ = oracle.sample(500)
    errors = [_reconstruction_error(oracle, schedule, x0, 50, corrections=count) for count in (0, 1, 3, 20)]
    return all_of(
        after_1_correction=less_equal(errors[1] / errors[0], 0.1),
        after_3_corrections=less_equal(errors[2] / errors[1], 0.1),
        after_20_corrections=less_equal(errors[3], 1e-10),
    )


@claim("B13.2.8-3")
def the_codes_of_data_are_standard_normal() -> Evidence:
    """DDIM inversion of ½ N(−2, ¼) + ½ N(2, ¼) over 250 steps gives the moments of N(0, 1)."""
    schedule = linear_schedule(1_000)
    oracle = two_modes(schedule)
    torch.manual_seed(0)
    x0, _ = oracle.sample(8_000)
    code = ddim_inversion(oracle, schedule, x0, grid=evenly_spaced_steps(1_000, 250))
    return all_of(
        mean=close(code.mean(), 0.0, atol=0.04),
        variance=close(code.var(), 1.0, atol=0.05),
        fourth_moment=close(code.pow(4).mean(), 3.0, atol=0.35),
    )


def _reconstruction_error(
    oracle: MixtureDenoiser, schedule: Schedule, x0: Tensor, steps: int, corrections: int = 0
) -> Tensor:
    grid = evenly_spaced_steps(len(schedule), steps)
    reconstruction = ddim_reconstruction(oracle, schedule, x0, grid=grid, corrections=corrections)
    return (reconstruction - x0).square().mean()
