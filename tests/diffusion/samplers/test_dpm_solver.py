"""Second-order solvers with exact denoisers: grids, numbers of evaluations, the exact flow of a Gaussian."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from parnassus.diffusion import (
    Schedule,
    clip_x0,
    cosine_schedule,
    ddim,
    dpm_solver,
    dpm_solver_path,
    evenly_spaced_steps,
    heun_path,
    heun_sampler,
)
from parnassus.diffusion.chain.exact_denoisers import MixtureDenoiser, gaussian_denoiser
from parnassus.diffusion.chain.forward_process import diffuse
from parnassus.diffusion.chain.predictions import x0_from_noise
from parnassus.diffusion.chain.schedules import linear_schedule

MEAN = torch.tensor([2.0, -1.0], dtype=torch.float64)
PATHS = [heun_path, dpm_solver_path]
SOLVERS = [heun_sampler, dpm_solver]


def sample_noise(count: int) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(count, 2, dtype=torch.float64)


def exact_end(schedule: Schedule, start: Tensor, std: float) -> Tensor:
    """The end of the flow of N(mean, s²), which preserves the standardised value."""
    alpha_bar = schedule.alpha_bar[-1]
    std_at_start = (alpha_bar * std**2 + 1 - alpha_bar).sqrt()
    return MEAN + std * (start - alpha_bar.sqrt() * MEAN) / std_at_start


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("schedule", [linear_schedule(1_000), cosine_schedule(1_000)], ids=["linear", "cosine"])
def test_solvers_match_the_exact_flow_of_a_gaussian(solver: Callable[..., Tensor], schedule: Schedule) -> None:
    oracle, start = gaussian_denoiser(schedule, MEAN, 0.5), sample_noise(100)
    ends = [solver(oracle, schedule, start, grid=evenly_spaced_steps(1_000, count)) for count in (25, 1_000)]
    expected = exact_end(schedule, start, 0.5)
    torch.testing.assert_close(ends[1], expected, atol=2e-3, rtol=0)
    ddim_error = (ddim(oracle, schedule, start, grid=evenly_spaced_steps(1_000, 25)) - expected).norm()
    assert float((ends[0] - expected).norm() / ddim_error) < 0.7


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("grid", [[999], [0, 999], [3, 4, 500], list(range(0, 1_000, 7))])
def test_states_match_closed_form_on_the_grid(path: Callable[..., object], grid: list[int]) -> None:
    """With a point mass the state at step s of the grid is √ᾱ_s x_0 + √(1 − ᾱ_s) ε with the same ε."""
    schedule = linear_schedule(1_000)
    oracle, steps_called, epsilon = gaussian_denoiser(schedule, MEAN, 0.0), [], sample_noise(5)

    def recording_denoiser(x: Tensor, t: Tensor) -> Tensor:
        steps_called.append(int(t.unique().item()))
        return oracle(x, t)

    start = diffuse(schedule, MEAN.expand(5, 2), torch.full((5,), grid[-1]), epsilon)
    states = list(path(recording_denoiser, schedule, start, grid=torch.tensor(grid)))  # type: ignore[call-overload]
    assert set(steps_called) == set(grid)
    assert steps_called == sorted(steps_called, reverse=True)
    assert len(steps_called) == (len(grid) if path is dpm_solver_path else 2 * len(grid) - 1)
    assert len(states) == len(grid) + 1
    for step, state in zip(grid[::-1], states[:-1], strict=True):
        expected = diffuse(schedule, MEAN.expand(5, 2), torch.full((5,), step), epsilon)
        torch.testing.assert_close(state, expected, atol=1e-9, rtol=0)
    torch.testing.assert_close(states[-1], MEAN.expand(5, 2), atol=1e-8, rtol=0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_clipped_denoiser_keeps_samples_in_range(solver: Callable[..., Tensor]) -> None:
    """With predictions clipped to [−1, 1], samples of modes at ±1.5 end at the border."""
    schedule = cosine_schedule(200)
    oracle = MixtureDenoiser(schedule, torch.tensor([[-1.5, 0.0], [1.5, 0.0]]).double(), torch.full((2,), 0.1).double())
    x = solver(clip_x0(oracle, schedule), schedule, sample_noise(100), grid=evenly_spaced_steps(200, 10))
    assert float(x.abs().max()) <= 1 + 1e-9
    torch.testing.assert_close(x[:, 0].abs(), torch.ones(100).double(), atol=1e-9, rtol=0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_step_gives_the_predicted_clean_data(solver: Callable[..., Tensor]) -> None:
    schedule, start, t = cosine_schedule(100), sample_noise(10), torch.full((10,), 99)
    oracle = gaussian_denoiser(schedule, MEAN, 0.5)
    prediction = x0_from_noise(schedule, start, t, oracle(start, t))
    torch.testing.assert_close(solver(oracle, schedule, start, grid=torch.tensor([99])), prediction)


@pytest.mark.parametrize("solver", SOLVERS)
def test_invalid_grids_raise_value_error(solver: Callable[..., Tensor]) -> None:
    schedule = linear_schedule(10)
    oracle = gaussian_denoiser(schedule, MEAN, 0.5)
    for grid in ([3, 2], [0, 10], [-1, 4]):
        with pytest.raises(ValueError, match="grid must increase strictly within 0 … 9; got grid="):
            solver(oracle, schedule, sample_noise(1), grid=torch.tensor(grid))
