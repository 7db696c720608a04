"""DDIM inversion: known codes of Gaussian data, and reconstruction."""

import pytest
import torch
from torch import Tensor

from parnassus.diffusion import (
    cosine_schedule,
    ddim_inversion,
    ddim_inversion_path,
    ddim_reconstruction,
    evenly_spaced_steps,
    linear_schedule,
)
from parnassus.diffusion.chain.exact_denoisers import gaussian_denoiser

SCHEDULE = cosine_schedule(500)
MEAN = torch.tensor([2.0, -1.0], dtype=torch.float64)
ORACLE = gaussian_denoiser(SCHEDULE, MEAN, 0.5)


def sample_data() -> Tensor:
    torch.manual_seed(0)
    return MEAN + 0.5 * torch.randn(200, 2, dtype=torch.float64)


def test_codes_of_gaussian_data_match_closed_form() -> None:
    x0, alpha_bar = sample_data(), SCHEDULE.alpha_bar[-1]
    expected = alpha_bar.sqrt() * MEAN + (x0 - MEAN) / 0.5 * (alpha_bar * 0.25 + 1 - alpha_bar).sqrt()
    torch.testing.assert_close(ddim_inversion(ORACLE, SCHEDULE, x0), expected, atol=0.02, rtol=0)


def test_path_starts_at_the_data_and_has_one_state_per_step() -> None:
    x0, grid = sample_data(), evenly_spaced_steps(500, 20)
    states = list(ddim_inversion_path(ORACLE, SCHEDULE, x0, grid=grid))
    assert len(states) == 21
    assert torch.equal(states[0], x0)
    assert torch.equal(states[-1], ddim_inversion(ORACLE, SCHEDULE, x0, grid=grid))


@pytest.mark.parametrize("corrections", [0, 2])
def test_denoiser_is_called_at_grid_steps(corrections: int) -> None:
    steps_called, grid = [], [2, 100, 499]

    def recording_denoiser(x: Tensor, t: Tensor) -> Tensor:
        steps_called.append(int(t.unique().item()))
        return ORACLE(x, t)

    ddim_inversion(recording_denoiser, SCHEDULE, sample_data(), grid=torch.tensor(grid), corrections=corrections)
    assert set(steps_called) == (set(grid) if corrections else {2, 100})  # step 499 only with corrections
    assert len(steps_called) == 3 * (1 + corrections)


def test_corrections_reduce_the_reconstruction_error() -> None:
    """Convergence is slow for steps that end in nearly pure noise, where the change of ε is as large as ε."""
    x0, grid, schedule = sample_data(), evenly_spaced_steps(500, 40), linear_schedule(500)
    oracle = gaussian_denoiser(schedule, MEAN, 0.5)
    errors = [
        float((ddim_reconstruction(oracle, schedule, x0, grid=grid, corrections=count) - x0).abs().max())
        for count in (0, 2, 30)
    ]
    assert errors[0] > 10 * errors[1]
    assert errors[2] < 1e-8


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="corrections must be 0 or more; got corrections=-1"):
        ddim_inversion(ORACLE, SCHEDULE, sample_data(), corrections=-1)
    with pytest.raises(ValueError, match="grid must increase strictly within 0 … 499; got grid="):
        ddim_inversion(ORACLE, SCHEDULE, sample_data(), grid=torch.tensor([500]))
