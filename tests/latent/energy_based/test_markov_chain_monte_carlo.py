"""Gibbs and Metropolis sampling of known distributions."""

from math import exp

import pytest
import torch
from torch import Tensor

from parnassus.latent.energy_based.markov_chain_monte_carlo import gibbs_sampling, metropolis_sampling


def test_gibbs_sampling_of_one_unit_matches_bernoulli() -> None:
    def energy(s: Tensor) -> Tensor:
        return s[:, 0]

    samples = gibbs_sampling(
        energy, torch.zeros(40_000, 1), sweeps=1, beta=1.5, generator=torch.Generator().manual_seed(0)
    )
    assert float(samples.mean()) == pytest.approx(1 / (1 + exp(1.5)), abs=0.01)


def test_metropolis_samples_a_normal_distribution() -> None:
    """E = x²/2 at β = 4 is a normal distribution of variance ¼."""
    generator = torch.Generator().manual_seed(0)

    def energy(x: Tensor) -> Tensor:
        return x[:, 0].square() / 2

    def propose(x: Tensor) -> Tensor:
        return x + torch.randn(x.shape, generator=generator)

    chains = metropolis_sampling(energy, torch.zeros(20_000, 1), propose, steps=60, beta=4.0, generator=generator)
    assert float(chains.state.var()) == pytest.approx(0.25, rel=0.05)
    assert 0.2 < float(chains.acceptance.mean()) < 0.8


def test_metropolis_with_beta_zero_accepts_every_proposal() -> None:
    chains = metropolis_sampling(lambda x: x[:, 0], torch.zeros(5, 1), lambda x: x + 1, steps=7, beta=0.0)
    assert chains.acceptance.tolist() == [1.0] * 5
    assert chains.state[:, 0].tolist() == [7.0] * 5


@pytest.mark.parametrize("beta", [-1.0, float("inf"), float("nan")])
def test_invalid_beta_raises_value_error(beta: float) -> None:
    with pytest.raises(ValueError, match="0 ≤ beta < ∞; got 1 steps"):
        gibbs_sampling(lambda s: s[:, 0], torch.zeros(1, 1), sweeps=1, beta=beta)
