"""Aggregated posteriors and mutual information of known encoders."""

from math import log

import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

from parnassus.latent.variational.aggregated_posterior import (
    active_units,
    code_information,
    log_aggregated_posterior,
    rate_per_unit,
    second_moments,
)
from parnassus.latent.variational.reparametrisation import standard_normal_kl

DOUBLE = torch.float64


def random_moments(rows: int = 30) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    mean, log_variance = torch.randn(2, rows, 3, generator=generator, dtype=DOUBLE)
    return 2 * mean, log_variance - 2


def test_log_density_matches_mixture_same_family() -> None:
    mean, log_variance = random_moments()
    z = torch.randn(1_700, 3, dtype=DOUBLE)  # more than one chunk
    components = Independent(Normal(mean, (log_variance / 2).exp()), 1)
    mixture = MixtureSameFamily(Categorical(torch.ones(len(mean), dtype=DOUBLE)), components)
    torch.testing.assert_close(log_aggregated_posterior(z, mean, log_variance), mixture.log_prob(z))


def test_rate_is_information_plus_prior_gap() -> None:
    torch.manual_seed(0)
    result = code_information(*random_moments(), num_draws=3_000)
    assert result.rate == pytest.approx(float(standard_normal_kl(*random_moments()).mean()), abs=1e-12)
    assert result.information + result.prior_gap == pytest.approx(result.rate, abs=0.03)
    assert result.prior_gap > 0


def test_information_of_separated_and_of_equal_codes() -> None:
    separated = 1_000 * torch.eye(8)[:, :7]
    assert code_information(separated, torch.zeros(8, 7)).information == pytest.approx(log(8), abs=1e-9)
    equal = code_information(torch.ones(8, 7), torch.zeros(8, 7), num_draws=2_000)
    assert equal.information == pytest.approx(0, abs=1e-9)
    assert equal.prior_gap == pytest.approx(3.5, abs=0.1)  # half of ‖μ‖²


def test_information_of_a_linear_encoder_matches_closed_form() -> None:
    torch.manual_seed(1)
    x = torch.randn(3_000, 2, dtype=DOUBLE)
    mean, log_variance = x * torch.tensor([2.0, 0.5]), torch.tensor([0.5, 1.0], dtype=DOUBLE).log().expand(3_000, 2)
    exact = (log(1 + 4 / 0.5) + log(1 + 0.25)) / 2
    assert code_information(mean, log_variance, num_draws=2).information == pytest.approx(exact, abs=0.04)


def test_rates_per_unit_sum_to_the_rate() -> None:
    mean, log_variance = random_moments()
    by_unit = rate_per_unit(mean, log_variance)
    assert by_unit.shape == (3,)
    torch.testing.assert_close(by_unit.sum(), standard_normal_kl(mean, log_variance).mean())
    torch.testing.assert_close(by_unit[1], standard_normal_kl(mean[:, 1:2], log_variance[:, 1:2]).mean())


def test_units_with_constant_mean_are_inactive() -> None:
    mean = torch.stack([torch.linspace(-1, 1, 20), torch.full((20,), 3.0), 0.05 * torch.linspace(-1, 1, 20)], 1)
    assert active_units(mean).tolist() == [True, False, False]
    assert active_units(mean, min_variance=1e-4).tolist() == [True, False, True]


def test_second_moments_match_closed_form() -> None:
    mean, log_variance = random_moments()
    expected = (mean.square() + log_variance.exp()).mean(0)
    torch.testing.assert_close(second_moments(mean, log_variance), expected)


def test_invalid_input_raises() -> None:
    with pytest.raises(ValueError, match="at least one row; got none"):
        log_aggregated_posterior(torch.zeros(2, 3), torch.zeros(0, 3), torch.zeros(0, 3))
    with pytest.raises(ValueError, match="num_draws must be positive; got num_draws=0"):
        code_information(*random_moments(), num_draws=0)
