"""Walks with known moments, and the rule that makes them exact."""

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


def pull(x: Tensor) -> Tensor:
    return -x


def bowl(x: Tensor) -> Tensor:
    return -x.square().flatten(1).sum(1) / 2


def test_without_noise_it_is_gradient_ascent() -> None:
    path = list(langevin_path(pull, torch.tensor([[1.0]]), step=0.25, steps=3, temperature=0.0))
    torch.testing.assert_close(torch.stack(path).flatten(), torch.tensor([1.0, 0.75, 0.75**2, 0.75**3]))


def test_one_step_has_the_mean_and_variance_of_the_rule() -> None:
    torch.manual_seed(0)
    end = langevin(pull, torch.full((200_000, 1), 2.0), step=0.1, steps=1)
    assert float(end.mean()) == pytest.approx(1.8, abs=0.005)
    assert float(end.var()) == pytest.approx(0.2, rel=0.02)


def test_the_stationary_variance_is_the_fixed_point_of_a_step() -> None:
    """It solves v = (1 − c/s²)² v + 2c."""
    for variance, step in ((0.5, 0.05), (0.5, 0.7), (3.0, 1.0)):
        v = stationary_variance(variance, step)
        assert (1 - step / variance) ** 2 * v + 2 * step == pytest.approx(v)
    assert stationary_variance(0.5, 1.0) == float("inf")


def test_acceptance_is_metropolis_by_hand() -> None:
    """Recover the proposal from an accepted step and work its ratio out with full normal densities."""
    torch.manual_seed(0)
    x = torch.randn(2_000, 2, dtype=torch.float64)
    moved = adjusted_langevin_step(bowl, pull, x, step=0.8)
    accepted = (moved.state != x).all(1)
    y, x = moved.state[accepted], x[accepted]
    kernel = torch.distributions.Normal
    forth = kernel(x + 0.8 * pull(x), 1.6**0.5).log_prob(y).sum(1)
    back = kernel(y + 0.8 * pull(y), 1.6**0.5).log_prob(x).sum(1)
    ratio = (bowl(y) - bowl(x) + back - forth).exp().clamp(max=1)
    torch.testing.assert_close(moved.acceptance[accepted], ratio)
    assert float(accepted.double().mean()) == pytest.approx(float(moved.acceptance.mean()), abs=0.03)


def test_short_steps_are_nearly_always_accepted_and_long_ones_are_not() -> None:
    torch.manual_seed(0)
    x = torch.randn(4_000, 1)
    short, long = (adjusted_langevin_step(bowl, pull, x, step=step).acceptance.mean() for step in (0.01, 5.0))
    assert float(short) > 0.99
    assert float(long) < 0.5


def test_the_adjusted_walk_keeps_its_law_where_the_plain_one_explodes() -> None:
    torch.manual_seed(0)
    start = torch.randn(4_000, 1)
    exact = adjusted_langevin(bowl, pull, start, step=2.5, steps=30)
    assert float(exact.var()) == pytest.approx(1.0, rel=0.08)
    assert float(langevin(pull, start, step=2.5, steps=30).var()) > 1e5


def test_images_walk_too() -> None:
    path = list(adjusted_langevin_path(bowl, pull, torch.zeros(3, 1, 4, 4), step=0.1, steps=2))
    assert [moved.state.shape for moved in path] == [(3, 1, 4, 4)] * 3
    assert all(0 <= float(moved.acceptance.min()) <= 1 for moved in path)


def test_paths_begin_at_the_start_and_have_a_state_a_step() -> None:
    start = torch.randn(5, 2)
    path = list(langevin_path(pull, start, step=0.1, steps=4))
    assert len(path) == 5
    assert path[0] is start


@pytest.mark.parametrize(("step", "steps"), [(0.0, 3), (-0.1, 3), (0.1, -1), (float("nan"), 1)])
def test_impossible_steps_are_refused(step: float, steps: int) -> None:
    with pytest.raises(ValueError, match="need step > 0 and steps ≥ 0; got step="):
        langevin(pull, torch.zeros(1, 1), step=step, steps=steps)


def test_a_negative_temperature_is_refused() -> None:
    with pytest.raises(ValueError, match="temperature must be ≥ 0; got temperature=-1"):
        langevin(pull, torch.zeros(1, 1), step=0.1, steps=1, temperature=-1.0)


def test_a_variance_must_be_positive() -> None:
    with pytest.raises(ValueError, match="need variance > 0 and step > 0"):
        stationary_variance(0.0, 0.1)
