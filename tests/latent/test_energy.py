"""Boltzmann distributions against small systems that can be summed by hand."""

from math import exp, log

import pytest
import torch
from torch import Tensor

from parnassus.latent.energy import boltzmann, free_energy, gibbs, least_free_energy, log_partition, metropolis

TWO = torch.tensor([0.0, 1.0], dtype=torch.float64)


def test_a_two_level_system() -> None:
    p = boltzmann(TWO, beta=2.0)
    assert float(p[1]) == pytest.approx(exp(-2) / (1 + exp(-2)), rel=1e-12)
    assert float(log_partition(TWO, beta=2.0)) == pytest.approx(log(1 + exp(-2)), rel=1e-12)


def test_a_forbidden_state_has_no_probability_even_when_hot() -> None:
    energy = torch.tensor([0.0, 3.0, torch.inf])
    torch.testing.assert_close(boltzmann(energy, beta=0.0), torch.tensor([0.5, 0.5, 0.0]))
    q = torch.tensor([0.5, 0.5, 0.0])
    torch.testing.assert_close(free_energy(energy, q), torch.tensor(1.5 - log(2)))


def test_rows_of_a_batch_are_systems_of_their_own() -> None:
    energy = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(boltzmann(energy)[1], boltzmann(energy[1]))
    torch.testing.assert_close(least_free_energy(energy, beta=0.5)[2], least_free_energy(energy[2], beta=0.5))


def test_certainty_has_the_energy_of_its_state_and_no_entropy() -> None:
    assert float(free_energy(TWO, torch.tensor([0.0, 1.0], dtype=torch.float64), beta=3.0)) == 1.0


def test_the_free_energy_of_a_uniform_guess() -> None:
    uniform = torch.full((2,), 0.5, dtype=torch.float64)
    assert float(free_energy(TWO, uniform, beta=4.0)) == pytest.approx(0.5 - log(2) / 4)


def test_gibbs_of_one_unit_is_a_biased_coin() -> None:
    def energy(s: Tensor) -> Tensor:
        return s[:, 0]

    drawn = gibbs(energy, torch.zeros(40_000, 1), sweeps=1, beta=1.5, generator=torch.Generator().manual_seed(0))
    assert float(drawn.mean()) == pytest.approx(1 / (1 + exp(1.5)), abs=0.01)


def test_metropolis_walks_to_a_normal_law() -> None:
    """E = x²/2 at β = 4 is a normal law of variance ¼."""
    generator = torch.Generator().manual_seed(0)

    def energy(x: Tensor) -> Tensor:
        return x[:, 0].square() / 2

    def jump(x: Tensor) -> Tensor:
        return x + torch.randn(x.shape, generator=generator)

    walk = metropolis(energy, torch.zeros(20_000, 1), jump, steps=60, beta=4.0, generator=generator)
    assert float(walk.state.var()) == pytest.approx(0.25, rel=0.05)
    assert 0.2 < float(walk.acceptance.mean()) < 0.8


def test_a_hot_walk_takes_every_proposal() -> None:
    walk = metropolis(lambda x: x[:, 0], torch.zeros(5, 1), lambda x: x + 1, steps=7, beta=0.0)
    assert walk.acceptance.tolist() == [1.0] * 5
    assert walk.state[:, 0].tolist() == [7.0] * 5


@pytest.mark.parametrize("beta", [-1.0, float("inf"), float("nan")])
def test_an_impossible_temperature_is_refused(beta: float) -> None:
    with pytest.raises(ValueError, match="0 ≤ β < ∞; got"):
        boltzmann(TWO, beta=beta)
    with pytest.raises(ValueError, match="0 ≤ β < ∞; got 1 steps"):
        gibbs(lambda s: s[:, 0], torch.zeros(1, 1), sweeps=1, beta=beta)


def test_a_free_energy_at_infinite_temperature_is_refused() -> None:
    with pytest.raises(ValueError, match="β > 0; got beta=0"):
        free_energy(TWO, boltzmann(TWO), beta=0.0)
    with pytest.raises(ValueError, match="β > 0; got beta=0"):
        least_free_energy(TWO, beta=0.0)


def test_energies_that_leave_no_distribution_are_refused() -> None:
    with pytest.raises(ValueError, match="must not be NaN or −∞"):
        boltzmann(torch.tensor([0.0, torch.nan]))
    with pytest.raises(ValueError, match="all are"):
        boltzmann(torch.full((2,), torch.inf))
    with pytest.raises(ValueError, match="sum to one"):
        free_energy(TWO, TWO + 1)
