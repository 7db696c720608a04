"""DDPM and DDIM with exact denoisers, whose samples have known distributions."""

import pytest
import torch
from torch import Tensor

from parnassus.diffusion import Schedule, ddim, ddim_path, ddpm, ddpm_path, evenly_spaced_steps, linear_schedule
from parnassus.diffusion.chain.exact_denoisers import MixtureDenoiser, gaussian_denoiser
from parnassus.diffusion.chain.forward_process import diffuse, forward_variance
from parnassus.diffusion.samplers.ddim import ddim_variance

MEAN = torch.tensor([2.0, -1.0], dtype=torch.float64)


def make_schedule(steps: int) -> Schedule:
    return linear_schedule(steps, low=0.1 / steps, high=20 / steps)


def sample_noise(count: int) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(count, 2, dtype=torch.float64)


def test_forward_process_ends_in_standard_normal() -> None:
    schedule, start = make_schedule(400), sample_noise(20_000)
    x = diffuse(schedule, MEAN.expand(20_000, 2), torch.full((20_000,), 399), start)
    torch.testing.assert_close(x.mean(0), torch.zeros(2).double(), atol=0.04, rtol=0)
    torch.testing.assert_close(x.std(0), torch.ones(2).double(), atol=0.02, rtol=0)


def test_ancestral_samples_follow_a_gaussian() -> None:
    schedule = make_schedule(400)
    x = ddpm(gaussian_denoiser(schedule, MEAN, 0.5), schedule, sample_noise(20_000))
    torch.testing.assert_close(x.mean(0), MEAN, atol=0.03, rtol=0)
    torch.testing.assert_close(x.std(0), torch.full((2,), 0.5).double(), atol=0.02, rtol=0)


def test_forward_variance_is_exact_for_standard_normal_data() -> None:
    """For N(0, I) the chain is stationary only with 1 − α_t; Σ_q(t) makes samples too narrow."""
    schedule = make_schedule(50)
    oracle = gaussian_denoiser(schedule, torch.zeros(2).double(), 1.0)
    wide = ddpm(oracle, schedule, sample_noise(20_000), variance=forward_variance)
    narrow = ddpm(oracle, schedule, sample_noise(20_000))
    torch.testing.assert_close(wide.var(), torch.tensor(1.0).double(), atol=0.03, rtol=0)
    assert narrow.var() < 0.95


@pytest.mark.parametrize("sampler", [ddpm, ddim])
def test_point_mass_is_recovered_exactly(sampler: object) -> None:
    """The last step must not add noise."""
    schedule = make_schedule(100)
    assert callable(sampler)
    x = sampler(gaussian_denoiser(schedule, MEAN, 0.0), schedule, sample_noise(100))
    torch.testing.assert_close(x, MEAN.expand(100, 2), atol=1e-9, rtol=0)


@pytest.mark.parametrize("grid", [[999], [0, 999], [3, 4, 500], list(range(0, 1_000, 7)), list(range(1_000))])
def test_ddim_states_match_closed_form_on_the_grid(grid: list[int]) -> None:
    """With the exact ε of a point mass, the state at step s of the grid is √ᾱ_s x_0 + √(1 − ᾱ_s) ε with the same ε."""
    schedule, steps_called = linear_schedule(1_000), []
    oracle = gaussian_denoiser(schedule, MEAN, 0.0)

    def recording_denoiser(x: Tensor, t: Tensor) -> Tensor:
        steps_called.append(t.unique().item())
        return oracle(x, t)

    epsilon = sample_noise(5)
    last = torch.full((5,), grid[-1])
    start = diffuse(schedule, MEAN.expand(5, 2), last, epsilon)
    states = list(ddim_path(recording_denoiser, schedule, start, grid=torch.tensor(grid)))
    assert steps_called == grid[::-1]
    for step, state in zip(grid[::-1], states[:-1], strict=True):
        expected = diffuse(schedule, MEAN.expand(5, 2), torch.full((5,), step), epsilon)
        torch.testing.assert_close(state, expected, atol=1e-9, rtol=0)
    torch.testing.assert_close(states[-1], MEAN.expand(5, 2), atol=1e-8, rtol=0)


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0])
def test_distribution_does_not_depend_on_eta(eta: float) -> None:
    schedule = make_schedule(400)
    x = ddim(gaussian_denoiser(schedule, MEAN, 0.5), schedule, sample_noise(20_000), eta=eta)
    torch.testing.assert_close(x.mean(0), MEAN, atol=0.03, rtol=0)
    torch.testing.assert_close(x.std(0), torch.full((2,), 0.5).double(), atol=0.02, rtol=0)


def test_path_contains_all_states_and_the_sampler_returns_the_last() -> None:
    schedule = make_schedule(30)
    oracle = gaussian_denoiser(schedule, MEAN, 0.5)
    torch.manual_seed(1)
    path = list(ddpm_path(oracle, schedule, sample_noise(3)))
    assert len(path) == 31
    torch.manual_seed(1)
    assert torch.equal(ddpm(oracle, schedule, sample_noise(3)), path[-1])
    assert len(list(ddim_path(oracle, schedule, sample_noise(3), grid=evenly_spaced_steps(30, 4)))) == 5


def test_mixture_weights_are_preserved() -> None:
    schedule = make_schedule(300)
    oracle = MixtureDenoiser(
        schedule,
        torch.tensor([[-2.0, 0.0], [2.0, 0.0]]).double(),
        torch.full((2,), 0.3).double(),
        torch.tensor([0.2, 0.8]),
    )
    x = ddpm(oracle, schedule, sample_noise(5_000))
    assert abs(float((x[:, 0] > 0).double().mean()) - 0.8) < 0.025


def test_ddim_variance_is_at_most_the_marginal_variance() -> None:
    schedule = linear_schedule(1_000)
    for eta in (0.0, 0.3, 1.0):
        assert bool((ddim_variance(schedule, eta=eta) <= 1 - schedule.alpha_bar_before + 1e-15).all())


def test_invalid_arguments_raise_value_error() -> None:
    schedule = linear_schedule(10)
    oracle = gaussian_denoiser(schedule, MEAN, 0.5)
    with pytest.raises(ValueError, match="eta must lie between 0"):
        ddim(oracle, schedule, sample_noise(1), eta=1.5)
    for grid in ([3, 2], [0, 10], [-1, 4]):
        with pytest.raises(ValueError, match="grid must increase strictly within 0 … 9; got grid="):
            ddim(oracle, schedule, sample_noise(1), grid=torch.tensor(grid))
