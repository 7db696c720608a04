"""Langevin dynamics and its Metropolis adjustment, with known moments."""

import pytest
import torch
from torch import Tensor

from parnassus.diffusion.samplers.langevin import (
    adjusted_langevin,
    adjusted_langevin_path,
    adjusted_langevin_step,
    langevin,
    langevin_path,
    stationary_variance,
)


def score(x: Tensor) -> Tensor:
    return -x


def log_density(x: Tensor) -> Tensor:
    return -x.square().flatten(1).sum(1) / 2


def test_temperature_0_is_gradient_ascent() -> None:
    path = list(langevin_path(score, torch.tensor([[1.0]]), step=0.25, steps=3, temperature=0.0))
    torch.testing.assert_close(torch.stack(path).flatten(), torch.tensor([1.0, 0.75, 0.75**2, 0.75**3]))


def test_one_step_has_the_exact_mean_and_variance() -> None:
    torch.manual_seed(0)
    end = langevin(score, torch.full((200_000, 1), 2.0), step=0.1, steps=1)
    assert float(end.mean()) == pytest.approx(1.8, abs=0.005)
    assert float(end.var()) == pytest.approx(0.2, rel=0.02)


def test_stationary_variance_is_a_fixed_point() -> None:
    """The stationary variance v solves v = (1 − c/s²)² v + 2c."""
    for variance, step in ((0.5, 0.05), (0.5, 0.7), (3.0, 1.0)):
        v = stationary_variance(variance, step)
        assert (1 - step / variance) ** 2 * v + 2 * step == pytest.approx(v)
    assert stationary_variance(0.5, 1.0) == float("inf")


def test_acceptance_probability_matches_metropolis_hastings() -> None:
    """The expected probability is computed for accepted proposals with normal densities."""
    torch.manual_seed(0)
    x = torch.randn(2_000, 2, dtype=torch.float64)
    result = adjusted_langevin_step(log_density, score, x, step=0.8)
    accepted = (result.state != x).all(1)
    y, x = result.state[accepted], x[accepted]
    kernel = torch.distributions.Normal
    forward = kernel(x + 0.8 * score(x), 1.6**0.5).log_prob(y).sum(1)
    backward = kernel(y + 0.8 * score(y), 1.6**0.5).log_prob(x).sum(1)
    ratio = (log_density(y) - log_density(x) + backward - forward).exp().clamp(max=1)
    torch.testing.assert_close(result.acceptance[accepted], ratio)
    assert float(accepted.double().mean()) == pytest.approx(float(result.acceptance.mean()), abs=0.03)


def test_acceptance_rate_is_high_only_for_small_steps() -> None:
    torch.manual_seed(0)
    x = torch.randn(4_000, 1)
    small, large = (adjusted_langevin_step(log_density, score, x, step=step).acceptance.mean() for step in (0.01, 5.0))
    assert float(small) > 0.99
    assert float(large) < 0.5


def test_adjusted_chains_are_exact_where_unadjusted_chains_diverge() -> None:
    torch.manual_seed(0)
    start = torch.randn(4_000, 1)
    exact = adjusted_langevin(log_density, score, start, step=2.5, steps=30)
    assert float(exact.var()) == pytest.approx(1.0, rel=0.08)
    assert float(langevin(score, start, step=2.5, steps=30).var()) > 1e5


def test_image_states() -> None:
    path = list(adjusted_langevin_path(log_density, score, torch.zeros(3, 1, 4, 4), step=0.1, steps=2))
    assert [result.state.shape for result in path] == [(3, 1, 4, 4)] * 3
    assert all(0 <= float(result.acceptance.min()) <= 1 for result in path)


def test_paths_begin_at_the_start_and_have_one_state_per_step() -> None:
    start = torch.randn(5, 2)
    path = list(langevin_path(score, start, step=0.1, steps=4))
    assert len(path) == 5
    assert path[0] is start


@pytest.mark.parametrize(("step", "steps"), [(0.0, 3), (-0.1, 3), (0.1, -1), (float("nan"), 1)])
def test_invalid_steps_raise_value_error(step: float, steps: int) -> None:
    with pytest.raises(ValueError, match="step must be positive and steps ≥ 0; got step="):
        langevin(score, torch.zeros(1, 1), step=step, steps=steps)


def test_negative_temperature_raises_value_error() -> None:
    with pytest.raises(ValueError, match="temperature must be ≥ 0; got temperature=-1"):
        langevin(score, torch.zeros(1, 1), step=0.1, steps=1, temperature=-1.0)


def test_non_positive_variance_raises_value_error() -> None:
    with pytest.raises(ValueError, match="variance and step must be positive"):
        stationary_variance(0.0, 0.1)
