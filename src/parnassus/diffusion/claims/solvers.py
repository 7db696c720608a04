"""Claims about solvers of higher order and about DDIM backwards, with exact denoisers (book secs. 13.2.5, 13.2.8)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_most, claim, close, rate
from parnassus.diffusion.claims.truths import distances, two_modes
from parnassus.diffusion.guidance import clipped
from parnassus.diffusion.inversion import encode, reconstruct
from parnassus.diffusion.oracles import MixtureOracle
from parnassus.diffusion.samplers import ddim, even_grid
from parnassus.diffusion.schedules import Schedule, cosine_schedule, linear_schedule
from parnassus.diffusion.solvers import dpm, heun

SOLVERS = {"ddim": ddim, "heun": heun, "dpm": dpm}


@claim("B13.2.5-3")
def the_error_of_second_order_solvers_falls_with_the_square_of_the_steps() -> Evidence:
    """Distance to the finest solution: 1/steps for DDIM, 1/steps² for Heun and for DPM-Solver++(2M)."""
    schedule = cosine_schedule(1_025)
    oracle = two_modes(schedule)
    torch.manual_seed(0)
    start = torch.randn(300, 1, dtype=torch.float64)
    finest = heun(oracle, schedule, start)
    steps = torch.tensor([32, 64, 128])
    grids = [torch.arange(0, 1_025, 1_024 // count) for count in steps.tolist()]  # all end in the chain's first step
    return all_of(
        ddim=rate(steps, distances(ddim, oracle, start, grids, finest), -1.0, atol=0.1),
        heun=rate(steps, distances(heun, oracle, start, grids, finest), -2.0, atol=0.2),
        dpm=rate(steps, distances(dpm, oracle, start, grids, finest), -2.0, atol=0.2),
    )


@claim("B13.2.5-3")
def ten_calls_go_further_with_a_better_solver() -> Evidence:
    """At about 10 calls of the denoiser both solvers are at most 0.8 times as far from the finest solution as DDIM."""
    schedule = cosine_schedule(1_000)
    oracle = two_modes(schedule)
    torch.manual_seed(0)
    start = torch.randn(1_000, 1, dtype=torch.float64)
    finest = heun(oracle, schedule, start)
    plain, by_dpm, by_heun = (
        distances(sampler, oracle, start, [even_grid(1_000, steps)], finest)
        for sampler, steps in ((ddim, 10), (dpm, 10), (heun, 5))
    )
    return all_of(dpm=at_most(by_dpm / plain, 0.8), heun=at_most(by_heun / plain, 0.8))


@claim("B13.2.5-2")
def every_solver_asks_at_the_steps_of_its_grid_only() -> Evidence:
    """On an uneven grid of 5 steps DDIM and DPM-Solver++ ask 5 times, Heun 9 times, at kept steps, in falling order."""
    schedule, grid = linear_schedule(1_000), torch.tensor([3, 50, 51, 400, 998])
    oracle = two_modes(schedule)
    asked: dict[str, list[Tensor]] = {name: [] for name in SOLVERS}
    for name, sampler in SOLVERS.items():

        def listening(x: Tensor, t: Tensor, calls: list[Tensor] = asked[name]) -> Tensor:
            calls.append(t[0])
            return oracle(x, t)

        sampler(listening, schedule, torch.ones(1, 1, dtype=torch.float64), grid=grid)
    twice = torch.tensor([998, 400, 400, 51, 51, 50, 50, 3, 3])
    return all_of(
        ddim=close(torch.stack(asked["ddim"]), grid.flip(0)),
        dpm=close(torch.stack(asked["dpm"]), grid.flip(0)),
        heun=close(torch.stack(asked["heun"]), twice),
    )


@claim("B13.2.5-2")
def a_single_point_is_drawn_exactly_whatever_the_solver() -> Evidence:
    """Data at one point have straight ways: each solver ends in it, over 3 steps as over 1,000, clipped or not."""
    parts = {}
    for kind, schedule in (("linear", linear_schedule(1_000)), ("cosine", cosine_schedule(1_000))):
        point = torch.tensor([[0.7, -0.3]], dtype=torch.float64)
        oracle = MixtureOracle(schedule, point, torch.zeros(1, dtype=torch.float64))
        torch.manual_seed(0)
        start = torch.randn(50, 2, dtype=torch.float64)
        for name, sampler in SOLVERS.items():
            grid = even_grid(1_000, 3)
            ends = torch.stack(
                [sampler(denoiser, schedule, start, grid=grid) for denoiser in (oracle, clipped(oracle, schedule))]
            )
            parts[f"{name}_{kind}"] = close(ends, point.expand(2, 50, 2), atol=1e-7)
    return all_of(**parts)


@claim("B13.2.8-3")
def ddim_runs_backwards_and_stores_data_as_noise() -> Evidence:
    """Encoded and drawn again over 50, 100, 1,000 steps the squared error is below 0.006, 0.0015, 2e-5: as 1/steps²."""
    schedule = linear_schedule(1_000)
    oracle = two_modes(schedule)
    torch.manual_seed(0)
    x0, _ = oracle.draw(1_000)
    errors = torch.stack([_round_trip(oracle, schedule, x0, count) for count in (50, 100, 1_000)])
    return all_of(
        error=at_most(errors, torch.tensor([0.006, 0.0015, 2e-5]).double()),
        order=rate(torch.tensor([50, 100, 1_000]), errors, -2.0, atol=0.25),
        in_ten_steps=close(_round_trip(oracle, schedule, x0, 10), 0.14, atol=0.04),
    )


@claim("B13.2.8-3")
def asking_again_makes_the_code_exact() -> Evidence:
    """Each correction brings the round trip nearer; after 20 of them 50 steps lose nothing."""
    schedule = linear_schedule(1_000)
    oracle = two_modes(schedule)
    torch.manual_seed(0)
    x0, _ = oracle.draw(500)
    errors = [_round_trip(oracle, schedule, x0, 50, corrections=count) for count in (0, 1, 3, 20)]
    return all_of(
        one=at_most(errors[1] / errors[0], 0.1),
        three=at_most(errors[2] / errors[1], 0.1),
        twenty=at_most(errors[3], 1e-10),
    )


@claim("B13.2.8-3")
def the_codes_of_data_are_standard_normal() -> Evidence:
    """Encoded over 250 steps, ½ N(−2, ¼) + ½ N(2, ¼) becomes N(0, 1): mean, variance and fourth moment."""
    schedule = linear_schedule(1_000)
    oracle = two_modes(schedule)
    torch.manual_seed(0)
    x0, _ = oracle.draw(8_000)
    code = encode(oracle, schedule, x0, grid=even_grid(1_000, 250))
    return all_of(
        mean=close(code.mean(), 0.0, atol=0.04),
        variance=close(code.var(), 1.0, atol=0.05),
        fourth_moment=close(code.pow(4).mean(), 3.0, atol=0.35),
    )


def _round_trip(oracle: MixtureOracle, schedule: Schedule, x0: Tensor, steps: int, corrections: int = 0) -> Tensor:
    grid = even_grid(len(schedule), steps)
    copy = reconstruct(oracle, schedule, x0, grid=grid, corrections=corrections)
    return (copy - x0).square().mean()
