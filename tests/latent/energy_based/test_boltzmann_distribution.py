"""Boltzmann distributions against small systems that can be summed by hand."""

from math import exp, log

import pytest
import torch

from parnassus.latent.energy_based.boltzmann_distribution import (
    boltzmann_distribution,
    free_energy,
    log_partition,
    min_free_energy,
)

TWO = torch.tensor([0.0, 1.0], dtype=torch.float64)


def test_a_two_level_system() -> None:
    p = boltzmann_distribution(TWO, beta=2.0)
    assert float(p[1]) == pytest.approx(exp(-2) / (1 + exp(-2)), rel=1e-12)
    assert float(log_partition(TWO, beta=2.0)) == pytest.approx(log(1 + exp(-2)), rel=1e-12)


def test_a_forbidden_state_has_no_probability_even_when_hot() -> None:
    energy = torch.tensor([0.0, 3.0, torch.inf])
    torch.testing.assert_close(boltzmann_distribution(energy, beta=0.0), torch.tensor([0.5, 0.5, 0.0]))
    q = torch.tensor([0.5, 0.5, 0.0])
    torch.testing.assert_close(free_energy(energy, q), torch.tensor(1.5 - log(2)))


def test_rows_of_a_batch_are_systems_of_their_own() -> None:
    energy = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(boltzmann_distribution(energy)[1], boltzmann_distribution(energy[1]))
    torch.testing.assert_close(min_free_energy(energy, beta=0.5)[2], min_free_energy(energy[2], beta=0.5))


def test_certainty_has_the_energy_of_its_state_and_no_entropy() -> None:
    assert float(free_energy(TWO, torch.tensor([0.0, 1.0], dtype=torch.float64), beta=3.0)) == 1.0


def test_the_free_energy_of_a_uniform_guess() -> None:
    uniform = torch.full((2,), 0.5, dtype=torch.float64)
    assert float(free_energy(TWO, uniform, beta=4.0)) == pytest.approx(0.5 - log(2) / 4)


@pytest.mark.parametrize("beta", [-1.0, float("inf"), float("nan")])
def test_an_impossible_temperature_raises(beta: float) -> None:
    with pytest.raises(ValueError, match="0 ≤ beta < ∞; got"):
        boltzmann_distribution(TWO, beta=beta)


def test_a_free_energy_at_infinite_temperature_raises() -> None:
    with pytest.raises(ValueError, match="beta > 0; got beta=0"):
        free_energy(TWO, boltzmann_distribution(TWO), beta=0.0)
    with pytest.raises(ValueError, match="beta > 0; got beta=0"):
        min_free_energy(TWO, beta=0.0)


def test_energies_that_leave_no_distribution_raise() -> None:
    with pytest.raises(ValueError, match="must not be NaN or −∞"):
        boltzmann_distribution(torch.tensor([0.0, torch.nan]))
    with pytest.raises(ValueError, match="all are"):
        boltzmann_distribution(torch.full((2,), torch.inf))
    with pytest.raises(ValueError, match="sum to one"):
        free_energy(TWO, TWO + 1)
