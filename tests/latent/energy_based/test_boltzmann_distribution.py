"""Boltzmann distributions of small systems with known values."""

from math import exp, log

import pytest
import torch

from parnassus.latent.energy_based.boltzmann_distribution import (
    boltzmann_distribution,
    free_energy,
    log_partition,
    min_free_energy,
)
from parnassus.probability import standard_normal

TWO_LEVELS = torch.tensor([0.0, 1.0], dtype=torch.float64)


def test_two_level_system_matches_closed_form() -> None:
    p = boltzmann_distribution(TWO_LEVELS, beta=2.0)
    assert float(p[1]) == pytest.approx(exp(-2) / (1 + exp(-2)), rel=1e-12)
    assert float(log_partition(TWO_LEVELS, beta=2.0)) == pytest.approx(log(1 + exp(-2)), rel=1e-12)


def test_infinite_energy_has_probability_zero() -> None:
    energy = torch.tensor([0.0, 3.0, torch.inf])
    torch.testing.assert_close(boltzmann_distribution(energy, beta=0.0), torch.tensor([0.5, 0.5, 0.0]))
    q = torch.tensor([0.5, 0.5, 0.0])
    torch.testing.assert_close(free_energy(energy, q), torch.tensor(1.5 - log(2)))


def test_rows_of_a_batch_are_independent() -> None:
    energy = standard_normal(3, 4)
    torch.testing.assert_close(boltzmann_distribution(energy)[1], boltzmann_distribution(energy[1]))
    torch.testing.assert_close(min_free_energy(energy, beta=0.5)[2], min_free_energy(energy[2], beta=0.5))


def test_free_energy_of_a_point_mass_is_its_energy() -> None:
    assert float(free_energy(TWO_LEVELS, torch.tensor([0.0, 1.0], dtype=torch.float64), beta=3.0)) == 1.0


def test_free_energy_of_the_uniform_distribution() -> None:
    uniform = torch.full((2,), 0.5, dtype=torch.float64)
    assert float(free_energy(TWO_LEVELS, uniform, beta=4.0)) == pytest.approx(0.5 - log(2) / 4)


@pytest.mark.parametrize("beta", [-1.0, float("inf"), float("nan")])
def test_invalid_beta_raises_value_error(beta: float) -> None:
    with pytest.raises(ValueError, match="0 ≤ beta < ∞; got"):
        boltzmann_distribution(TWO_LEVELS, beta=beta)


def test_free_energy_with_beta_zero_raises_value_error() -> None:
    with pytest.raises(ValueError, match="beta > 0; got beta=0"):
        free_energy(TWO_LEVELS, boltzmann_distribution(TWO_LEVELS), beta=0.0)
    with pytest.raises(ValueError, match="beta > 0; got beta=0"):
        min_free_energy(TWO_LEVELS, beta=0.0)


def test_invalid_energies_raise_value_error() -> None:
    with pytest.raises(ValueError, match="must not be NaN or −∞"):
        boltzmann_distribution(torch.tensor([0.0, torch.nan]))
    with pytest.raises(ValueError, match="all are"):
        boltzmann_distribution(torch.full((2,), torch.inf))
    with pytest.raises(ValueError, match="sum to one"):
        free_energy(TWO_LEVELS, TWO_LEVELS + 1)
