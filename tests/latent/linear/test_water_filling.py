"""Reverse water-filling compared with closed forms and random allocations."""

from math import log

import pytest
import torch

from parnassus.latent.linear.water_filling import water_filling

VARIANCES = torch.tensor([4.0, 1.0, 0.25], dtype=torch.float64)


def test_rates_and_errors_match_closed_form() -> None:
    rates, errors = water_filling(VARIANCES, 0.5)
    torch.testing.assert_close(errors, torch.tensor([0.5, 0.5, 0.25], dtype=torch.float64))
    torch.testing.assert_close(rates, torch.tensor([log(8) / 2, log(2) / 2, 0.0], dtype=torch.float64))


def test_level_above_all_variances_has_rate_zero() -> None:
    rates, errors = water_filling(torch.cat([VARIANCES, torch.zeros(1)]), 10.0)
    assert float(rates.sum()) == 0
    assert float(errors.sum()) == pytest.approx(5.25)


@pytest.mark.parametrize("level", [0.1, 0.5, 2.0])
def test_no_allocation_of_the_error_has_a_lower_rate(level: float) -> None:
    rates, errors = water_filling(VARIANCES, level)
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(20_000, 3, generator=generator, dtype=torch.float64)
    allocations = weights / weights.sum(1, keepdim=True) * errors.sum()
    feasible = allocations[(allocations <= VARIANCES).all(1)]
    assert len(feasible) > 100
    assert float(((VARIANCES / feasible).log() / 2).sum(1).min()) >= float(rates.sum()) - 1e-12


def test_slope_of_the_rate_distortion_curve() -> None:
    level = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    rates, errors = water_filling(VARIANCES, level)
    (rate_slope,) = torch.autograd.grad(rates.sum(), level, retain_graph=True)
    (error_slope,) = torch.autograd.grad(errors.sum(), level)
    assert float(rate_slope / error_slope) == pytest.approx(-1 / 0.8)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="must not be negative; the smallest is -1"):
        water_filling(-VARIANCES / 4, 1.0)
    with pytest.raises(ValueError, match="level must be positive"):
        water_filling(VARIANCES, 0.0)
