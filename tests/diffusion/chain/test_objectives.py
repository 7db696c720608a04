"""Errors of exact denoisers at each step, and the predictions recorded by `record_x0`."""

import torch

from parnassus.diffusion.chain.exact_denoisers import MixtureDenoiser, gaussian_denoiser
from parnassus.diffusion.chain.objectives import error_by_step
from parnassus.diffusion.chain.schedules import cosine_schedule
from parnassus.diffusion.guidance import record_x0
from parnassus.diffusion.samplers.ddim import ddim_path
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps

SCHEDULE = cosine_schedule(200)


def test_error_of_an_exact_denoiser_is_the_conditional_variance_of_the_noise() -> None:
    torch.manual_seed(0)
    oracle = gaussian_denoiser(SCHEDULE, torch.zeros(3, dtype=torch.float64), 0.5)
    x0, steps = 0.5 * torch.randn(40_000, 3, dtype=torch.float64), torch.tensor([0, 50, 150])
    signal = 0.25 * SCHEDULE.alpha_bar
    variance = signal / (signal + 1 - SCHEDULE.alpha_bar)  # Var[ε | x_t]
    torch.testing.assert_close(error_by_step(oracle, SCHEDULE, x0, steps), variance[steps], rtol=0.03, atol=0)
    assert error_by_step(oracle, SCHEDULE, x0[:10]).shape == (200,)


def test_record_x0_records_predictions_without_changing_the_samples() -> None:
    torch.manual_seed(0)
    point = torch.tensor([[0.7, -0.3]], dtype=torch.float64)
    oracle = MixtureDenoiser(SCHEDULE, point, torch.zeros(1, dtype=torch.float64))
    start, grid = torch.randn(5, 2, dtype=torch.float64), evenly_spaced_steps(200, 4)
    denoiser, predictions = record_x0(oracle, SCHEDULE)
    path = list(ddim_path(denoiser, SCHEDULE, start, grid=grid))
    torch.testing.assert_close(torch.stack(predictions), point.expand(4, 5, 2))  # exact for a point mass
    torch.testing.assert_close(torch.stack(path), torch.stack(list(ddim_path(oracle, SCHEDULE, start, grid=grid))))
