"""Our process and samplers against diffusers' schedulers: same model, same noise, same numbers."""

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
    """Any smooth function of both arguments will do."""
    return torch.tanh(x + 0.5 * torch.sin(t / 50.0).reshape(-1, *[1] * (x.dim() - 1)))


def scheduler(name: str, **options: object) -> Any:
    made = getattr(diffusers, name)(
        num_train_timesteps=STEPS, beta_start=1e-4, beta_end=0.02, beta_schedule="linear", clip_sample=False, **options
    )
    made.set_timesteps(STEPS)
    return made


@pytest.fixture
def x() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(SHAPE)


def test_noising_agrees(x: Tensor) -> None:
    noise, t = torch.randn(SHAPE), torch.tensor([0, 10, 500, 999])
    theirs = scheduler("DDPMScheduler").add_noise(x, noise, t)
    torch.testing.assert_close(diffuse(SCHEDULE, x, t, noise), theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("option", "variance"), [("fixed_small", posterior_variance), ("fixed_large", forward_variance)]
)
def test_variances_agree(option: str, variance: object) -> None:
    theirs = scheduler("DDPMScheduler", variance_type=option)
    assert callable(variance)
    ours = variance(SCHEDULE)
    for step in (1, 2, 10, 100, 500, 998, 999):  # at 0 theirs is clipped to 1e-20 and never used
        assert abs(float(theirs._get_variance(step)) - float(ours[step])) < 1e-5


@pytest.mark.parametrize("step", [999, 998, 500, 100, 10, 0])
def test_ancestral_steps_agree(x: Tensor, step: int) -> None:
    compare_ancestral_steps(scheduler("DDPMScheduler"), x, step)


@pytest.mark.parametrize("step", [999, 500, 10, 2, 1, 0])
def test_ancestral_steps_agree_everywhere_given_exact_tables(x: Tensor, step: int) -> None:
    """Theirs keeps ᾱ in float32, where 1 − ᾱ has few digits left near the data: 2e-4 off at step 1 without this."""
    theirs = scheduler("DDPMScheduler")
    theirs.alphas_cumprod = SCHEDULE.alpha_bar.clone()
    compare_ancestral_steps(theirs, x, step)


def compare_ancestral_steps(theirs: Any, x: Tensor, step: int) -> None:
    t = torch.full((len(x),), step)
    noise = model(x, t)
    torch.manual_seed(1)
    found = theirs.step(noise, step, x).prev_sample.float()
    torch.manual_seed(1)
    by_noise = mean_from_noise(SCHEDULE, x, t, noise)
    by_posterior = posterior_mean(SCHEDULE, x, x0_from_noise(SCHEDULE, x, t, noise), t)
    fresh = torch.randn(SHAPE) * posterior_variance(SCHEDULE)[step].sqrt().float()  # zero at step 0
    torch.testing.assert_close(by_noise + fresh, found, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(by_posterior + fresh, found, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("spacing", "count"), [("leading", 50), ("trailing", 50), ("trailing", 1_000)])
def test_ddim_steps_agree(x: Tensor, eta: float, spacing: str, count: int) -> None:
    """Every step of the path from the same state, with the same fresh noise."""
    theirs = scheduler("DDIMScheduler", timestep_spacing=spacing, set_alpha_to_one=True)
    theirs.set_timesteps(count)
    steps = theirs.timesteps.tolist()
    grid = torch.tensor(steps[::-1])
    torch.manual_seed(1)
    states = list(ddim_path(model, SCHEDULE, x, grid=grid, eta=eta))
    variance = ddim_variance(SCHEDULE.respace(grid), eta=eta).flip(0)
    torch.manual_seed(1)
    for i, step in enumerate(steps):
        drawn = torch.randn(SHAPE) if variance[i] > 0 else torch.zeros(SHAPE)
        noise = model(states[i], torch.full((len(x),), step))
        found = theirs.step(noise, step, states[i], eta=eta, variance_noise=drawn)
        scale = max(1.0, float(found.prev_sample.abs().max()))
        torch.testing.assert_close(states[i + 1] / scale, found.prev_sample / scale, atol=1e-5, rtol=0)


def test_our_sampler_stays_on_a_grid_where_theirs_leaves_it() -> None:
    """With `linspace` spacing diffusers steps to t − T // count, which is not the next timestep of its own grid."""
    theirs = scheduler("DDIMScheduler", timestep_spacing="linspace", set_alpha_to_one=True)
    theirs.set_timesteps(7)
    steps = theirs.timesteps.tolist()
    x0, inside = torch.full((1, 1), 0.7), torch.full((1, 1), -1.3)

    def exact(x: Tensor, t: Tensor) -> Tensor:
        alpha_bar = SCHEDULE.alpha_bar[t].float()[:, None]
        return (x - alpha_bar.sqrt() * x0) / (1 - alpha_bar).sqrt()

    def on_the_grid(step: int) -> Tensor:
        return diffuse(SCHEDULE, x0, torch.tensor([step]), inside)

    states = list(ddim_path(exact, SCHEDULE, on_the_grid(steps[0]), grid=torch.tensor(steps[::-1])))
    for step, state in zip(steps, states[:-1], strict=True):
        torch.testing.assert_close(state, on_the_grid(step), atol=1e-4, rtol=0)

    after = theirs.step(inside, steps[0], on_the_grid(steps[0])).prev_sample
    if torch.allclose(after, on_the_grid(steps[1]), atol=1e-4):
        pytest.skip("this version of diffusers walks its own grid")
    assert float((after - on_the_grid(steps[1])).abs()) > 1e-3
