"""Noising SDEs: closed-form marginals against their equations, simulations and discrete schedules."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.func import grad, vmap

from parnassus.diffusion.chain.schedules import Schedule, cosine_schedule, linear_schedule
from parnassus.diffusion.continuous.euler_maruyama import euler_maruyama
from parnassus.diffusion.continuous.sde import (
    NoisingSDE,
    sde_from_schedule,
    sub_variance_preserving,
    time_at_noise_ratio,
    variance_exploding,
    variance_preserving,
)
from parnassus.diffusion.continuous.time_grids import reverse_times

SDES = [variance_preserving, sub_variance_preserving, variance_exploding]
T = torch.linspace(0.01, 1.0, 34, dtype=torch.float64)


@pytest.mark.parametrize("make_sde", SDES)
def test_scale_and_std_satisfy_their_differential_equations(make_sde: Callable[[], NoisingSDE]) -> None:
    """a′ = f a and (b²)′ = 2 f b² + g², with a(0) = 1 and b(0) = 0."""
    sde = make_sde()

    def variance(t: Tensor) -> Tensor:
        return sde.std(t).square()

    torch.testing.assert_close(vmap(grad(sde.scale))(T), sde.rate(T) * sde.scale(T))
    torch.testing.assert_close(vmap(grad(variance))(T), 2 * sde.rate(T) * variance(T) + sde.diffusion_rate(T).square())
    zero = torch.zeros(1, dtype=torch.float64)
    assert float(sde.scale(zero)) == 1
    assert float(sde.std(zero)) == 0


@pytest.mark.parametrize("make_sde", SDES)
def test_marginals_match_euler_maruyama(make_sde: Callable[[], NoisingSDE]) -> None:
    torch.manual_seed(0)
    sde = make_sde()
    times = torch.linspace(0, 0.7, 401, dtype=torch.float64)
    x = euler_maruyama(sde.drift, sde.volatility, torch.full((20_000, 1), 3.0).double(), times)
    torch.testing.assert_close(x.mean(), 3 * sde.scale(times[-1]), atol=0.03, rtol=0)
    torch.testing.assert_close(x.std(), sde.std(times[-1]), atol=0, rtol=0.03)


def test_vp_preserves_unit_variance_and_sub_vp_std_is_smaller() -> None:
    vp, sub_vp = variance_preserving(), sub_variance_preserving()
    torch.testing.assert_close(vp.scale(T).square() + vp.std(T).square(), torch.ones_like(T))
    assert bool((sub_vp.std(T) <= vp.std(T)).all())
    assert vp.prior_std == pytest.approx(1)
    assert sub_vp.prior_std == pytest.approx(1, abs=1e-4)
    assert variance_exploding(0.01, 10.0).prior_std == pytest.approx(101**0.5, rel=1e-6)


@pytest.mark.parametrize("schedule", [linear_schedule(50, 1e-3, 0.3), cosine_schedule(200)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sde_from_schedule_matches_the_schedule(schedule: Schedule, dtype: torch.dtype) -> None:
    steps = len(schedule)
    t = torch.arange(1, steps + 1, dtype=dtype) / steps
    sde = sde_from_schedule(schedule)
    torch.testing.assert_close(sde.scale(t), schedule.alpha_bar.sqrt().to(dtype), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(sde.std(t), (1 - schedule.alpha_bar).sqrt().to(dtype), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(
        sde.diffusion_rate(t).square(), -steps * schedule.alpha.log().to(dtype), rtol=1e-4, atol=1e-6
    )


def test_diffuse_accepts_one_time_or_one_per_example() -> None:
    sde, x0, noise = variance_preserving(), torch.randn(3, 2, 2), torch.randn(3, 2, 2)
    t = torch.tensor([0.1, 0.5, 0.9])
    batched = sde.diffuse(x0, t, noise)
    for row, time in enumerate(t):
        torch.testing.assert_close(batched[row], sde.diffuse(x0, time, noise)[row])
    assert sde.diffuse(x0, t.double(), noise).dtype == torch.float32


def test_reverse_times_decrease_and_are_denser_near_the_data() -> None:
    times = reverse_times(10, end=0.01)
    assert float(times[0]) == pytest.approx(1)
    assert float(times[-1]) == pytest.approx(0.01)
    steps = -times.diff()
    assert bool((steps > 0).all())
    assert bool((steps.diff() < 0).all())
    torch.testing.assert_close(reverse_times(10, end=0.01, exponent=1.0).diff(), torch.full((10,), -0.099).double())


@pytest.mark.parametrize("make_sde", SDES)
def test_time_at_noise_ratio_inverts_the_ratio(make_sde: Callable[[], NoisingSDE]) -> None:
    sde = make_sde()
    for ratio in (0.01, 0.5, 5.0):
        t = torch.tensor(time_at_noise_ratio(sde, ratio), dtype=torch.float64)
        assert float(sde.std(t) / sde.scale(t)) == pytest.approx(ratio)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="0 < sigma_min < sigma_max must hold; got sigma_min="):
        variance_exploding(1.0, 0.5)
    with pytest.raises(ValueError, match="0 < beta_min ≤ beta_max must hold; got beta_min="):
        variance_preserving(0.0, 1.0)
    with pytest.raises(ValueError, match="steps must be ≥ 1, 0 < end < 1"):
        reverse_times(10, end=0.0)
    with pytest.raises(ValueError, match="ratio must be > 0 and at most"):
        time_at_noise_ratio(variance_exploding(), 11.0)
