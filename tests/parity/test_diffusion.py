"""Forward process and samplers against diffusers' schedulers with the same model and noise."""

from typing import Any

import pytest
import torch
from torch import Tensor

from parnassus.diffusion import ddim_path, diffuse, linear_schedule, posterior_mean, posterior_variance
from parnassus.diffusion.chain.forward_process import forward_variance
from parnassus.diffusion.chain.predictions import mean_from_noise, x0_from_noise
from parnassus.diffusion.samplers.ddim import ddim_variance

diffusers = pytest.importorskip("diffusers")

STEPS = 1_000
SCHEDULE = linear_schedule(STEPS)
SHAPE = (4, 1, 8, 8)


def model(x: Tensor, t: Tensor) -> Tensor:
    """An arbitrary smooth function of both arguments."""
    return torch.tanh(x + 0.5 * torch.sin(t / 50.0).reshape(-1, *[1] * (x.dim() - 1)))


def make_scheduler(name: str, **options: object) -> Any:
    scheduler = getattr(diffusers, name)(
        num_train_timesteps=STEPS, beta_start=1e-4, beta_end=0.02, beta_schedule="linear", clip_sample=False, **options
    )
    scheduler.set_timesteps(STEPS)
    return scheduler


@pytest.fixture
def x() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(SHAPE)


def test_diffuse_matches_add_noise(x: Tensor) -> None:
    noise, t = torch.randn(SHAPE), torch.tensor([0, 10, 500, 999])
    reference = make_scheduler("DDPMScheduler").add_noise(x, noise, t)
    torch.testing.assert_close(diffuse(SCHEDULE, x, t, noise), reference, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("option", "variance"), [("fixed_small", posterior_variance), ("fixed_large", forward_variance)]
)
def test_variances_match(option: str, variance: object) -> None:
    reference = make_scheduler("DDPMScheduler", variance_type=option)
    assert callable(variance)
    actual = variance(SCHEDULE)
    for step in (1, 2, 10, 100, 500, 998, 999):  # at 0 diffusers clips to 1e-20 and never uses the value
        assert abs(float(reference._get_variance(step)) - float(actual[step])) < 1e-5


@pytest.mark.parametrize("step", [999, 998, 500, 100, 10, 0])
def test_ancestral_steps_match(x: Tensor, step: int) -> None:
    compare_ancestral_steps(make_scheduler("DDPMScheduler"), x, step)


@pytest.mark.parametrize("step", [999, 500, 10, 2, 1, 0])
def test_all_ancestral_steps_match_with_exact_tables(x: Tensor, step: int) -> None:
    """The scheduler stores ᾱ in float32, where 1 − ᾱ loses digits at small t: an error of 2e-4 at step 1."""
    reference = make_scheduler("DDPMScheduler")
    reference.alphas_cumprod = SCHEDULE.alpha_bar.clone()
    compare_ancestral_steps(reference, x, step)


def compare_ancestral_steps(reference: Any, x: Tensor, step: int) -> None:
    t = torch.full((len(x),), step)
    noise = model(x, t)
    torch.manual_seed(1)
    expected = reference.step(noise, step, x).prev_sample.float()
    torch.manual_seed(1)
    mean_by_noise = mean_from_noise(SCHEDULE, x, t, noise)
    mean_by_posterior = posterior_mean(SCHEDULE, x, x0_from_noise(SCHEDULE, x, t, noise), t)
    step_noise = torch.randn(SHAPE) * posterior_variance(SCHEDULE)[step].sqrt().float()  # zero at step 0
    torch.testing.assert_close(mean_by_noise + step_noise, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(mean_by_posterior + step_noise, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("spacing", "count"), [("leading", 50), ("trailing", 50), ("trailing", 1_000)])
def test_ddim_steps_match(x: Tensor, eta: float, spacing: str, count: int) -> None:
    """Each step of the path from the same state with the same noise."""
    reference = make_scheduler("DDIMScheduler", timestep_spacing=spacing, set_alpha_to_one=True)
    reference.set_timesteps(count)
    steps = reference.timesteps.tolist()
    grid = torch.tensor(steps[::-1])
    torch.manual_seed(1)
    states = list(ddim_path(model, SCHEDULE, x, grid=grid, eta=eta))
    variance = ddim_variance(SCHEDULE.respace(grid), eta=eta).flip(0)
    torch.manual_seed(1)
    for i, step in enumerate(steps):
        step_noise = torch.randn(SHAPE) if variance[i] > 0 else torch.zeros(SHAPE)
        noise = model(states[i], torch.full((len(x),), step))
        expected = reference.step(noise, step, states[i], eta=eta, variance_noise=step_noise)
        scale = max(1.0, float(expected.prev_sample.abs().max()))
        torch.testing.assert_close(states[i + 1] / scale, expected.prev_sample / scale, atol=1e-5, rtol=0)


def test_ddim_path_stays_on_the_grid_where_diffusers_leaves_it() -> None:
    """With `linspace` spacing diffusers steps to t − T // count, which is not the next timestep of its grid."""
    reference = make_scheduler("DDIMScheduler", timestep_spacing="linspace", set_alpha_to_one=True)
    reference.set_timesteps(7)
    steps = reference.timesteps.tolist()
    x0, noise = torch.full((1, 1), 0.7), torch.full((1, 1), -1.3)

    def exact_model(x: Tensor, t: Tensor) -> Tensor:
        alpha_bar = SCHEDULE.alpha_bar[t].float()[:, None]
        return (x - alpha_bar.sqrt() * x0) / (1 - alpha_bar).sqrt()

    def noisy_state(step: int) -> Tensor:
        return diffuse(SCHEDULE, x0, torch.tensor([step]), noise)

    states = list(ddim_path(exact_model, SCHEDULE, noisy_state(steps[0]), grid=torch.tensor(steps[::-1])))
    for step, state in zip(steps, states[:-1], strict=True):
        torch.testing.assert_close(state, noisy_state(step), atol=1e-4, rtol=0)

    next_state = reference.step(noise, steps[0], noisy_state(steps[0])).prev_sample
    if torch.allclose(next_state, noisy_state(steps[1]), atol=1e-4):
        pytest.skip("this version of diffusers stays on its grid")
    assert float((next_state - noisy_state(steps[1])).abs()) > 1e-3
