"""Tweedie's formula against closed forms."""

import pytest
import torch

from parnassus.diffusion import linear_schedule
from parnassus.diffusion.chain.exact_denoisers import MixtureDenoiser
from parnassus.diffusion.chain.predictions import x0_from_noise
from parnassus.diffusion.scores.tweedie import tweedie_covariance, tweedie_mean


def test_posterior_of_gaussian_data_matches_closed_form() -> None:
    """x_0 ~ N(0, 4), noise 1: E[x_0 | x] = 0.8 x and Var = 0.8."""
    x = torch.tensor([[2.0], [-5.0]], dtype=torch.float64)
    mean = tweedie_mean(lambda y: -y / 5, x, noise_std=1.0)
    torch.testing.assert_close(mean, 0.8 * x)
    torch.testing.assert_close(
        tweedie_covariance(lambda y: -y / 5, x, noise_std=1.0).detach(), torch.full((2, 1, 1), 0.8, dtype=torch.float64)
    )


def test_mean_matches_the_prediction_of_an_exact_denoiser() -> None:
    torch.manual_seed(0)
    schedule = linear_schedule(100, low=1e-3, high=0.2)
    oracle = MixtureDenoiser(
        schedule, torch.tensor([[-1.0, 0.0], [1.0, 1.0]]).double(), torch.tensor([0.3, 0.5]).double()
    )
    x, t = torch.randn(20, 2, dtype=torch.float64), torch.full((20,), 40)
    alpha_bar = float(schedule.alpha_bar[40])
    mean = tweedie_mean(lambda y: oracle.score(y, t), x, scale=alpha_bar**0.5, noise_std=(1 - alpha_bar) ** 0.5)
    torch.testing.assert_close(mean, x0_from_noise(schedule, x, t, oracle(x, t)))


def test_without_noise_the_mean_is_x() -> None:
    x = torch.randn(3, 2)
    assert torch.equal(tweedie_mean(lambda y: -y, x, noise_std=0.0), x)


def test_invalid_scales_raise_value_error() -> None:
    with pytest.raises(ValueError, match="scale must be > 0 and noise_std ≥ 0; got scale="):
        tweedie_mean(torch.zeros_like, torch.zeros(1, 1), noise_std=1.0, scale=0.0)
