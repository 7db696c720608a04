"""Reverse water-filling: slope and ends of the curve, and an independent minimisation."""

from math import log

import pytest
import torch

from parnassus.latent.linear.water_filling import water_filling

VARIANCES = torch.tensor([4.0, 1.0, 0.25], dtype=torch.float64)


def test_directions_above_the_level_have_its_error() -> None:
    rates, errors = water_filling(VARIANCES, 0.5)
    torch.testing.assert_close(errors, torch.tensor([0.5, 0.5, 0.25], dtype=torch.float64))
    torch.testing.assert_close(rates, torch.tensor([log(8) / 2, log(2) / 2, 0.0], dtype=torch.float64))


def test_a_level_above_all_variances_has_rate_zero() -> None:
    rates, errors = water_filling(torch.cat([VARIANCES, torch.zeros(1)]), 10.0)
    assert float(rates.sum()) == 0
    assert float(errors.sum()) == pytest.approx(5.25)


@pytest.mark.parametrize("level", [0.1, 0.5, 2.0])
def test_no_other_allocation_of_the_error_has_a_lower_rate(level: float) -> None:
    rates, errors = water_filling(VARIANCES, level)
    generator = torch.Generator().manual_seed(0)
    shares = torch.rand(20_000, 3, generator=generator, dtype=torch.float64)
    split = shares / shares.sum(1, keepdim=True) * errors.sum()
    allowed = split[(split <= VARIANCES).all(1)]
    assert len(allowed) > 100
    assert float(((VARIANCES / allowed).log() / 2).sum(1).min()) >= float(rates.sum()) - 1e-12


def test_the_slope_of_the_curve_is_minus_half_over_the_level() -> None:
    level = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    rates, errors = water_filling(VARIANCES, level)
    (rate_slope,) = torch.autograd.grad(rates.sum(), level, retain_graph=True)
    (error_slope,) = torch.autograd.grad(errors.sum(), level)
    assert float(rate_slope / error_slope) == pytest.approx(-1 / 0.8)


def test_invalid_numbers_raise() -> None:
    with pytest.raises(ValueError, match="must not be negative; the smallest is -1"):
        water_filling(-VARIANCES / 4, 1.0)
    with pytest.raises(ValueError, match="level must be positive"):
        water_filling(VARIANCES, 0.0)
