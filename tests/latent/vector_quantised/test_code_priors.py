"""Priors over codes: normalisation, causality and sampling."""

import pytest
import torch
from torch import Tensor

from parnassus.latent.vector_quantised.code_priors import IndependentPrior, NeighbourPrior


def all_sequences(codes: int, positions: int) -> Tensor:
    return torch.cartesian_prod(*[torch.arange(codes)] * positions)


def priors() -> list[IndependentPrior | NeighbourPrior]:
    torch.manual_seed(0)
    independent = IndependentPrior(3, 4)
    torch.nn.init.normal_(independent.logits)
    return [independent, NeighbourPrior(3, (2, 2), width=8)]


@pytest.mark.parametrize("prior", priors(), ids=["independent", "neighbour"])
def test_probabilities_of_all_sequences_sum_to_one(prior: IndependentPrior | NeighbourPrior) -> None:
    assert float(prior.log_prob(all_sequences(3, 4)).exp().sum().detach()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("prior", priors(), ids=["independent", "neighbour"])
def test_sample_frequencies_match_the_probabilities(prior: IndependentPrior | NeighbourPrior) -> None:
    torch.manual_seed(1)
    powers = 3 ** torch.arange(4).flip(0)
    frequencies = torch.bincount((prior.sample(30_000) * powers).sum(1), minlength=81) / 30_000
    torch.testing.assert_close(frequencies, prior.log_prob(all_sequences(3, 4)).exp().detach(), atol=0.008, rtol=0)


def test_neighbour_prior_is_causal() -> None:
    torch.manual_seed(0)
    prior = NeighbourPrior(5, (2, 3), width=8)
    a = torch.randint(5, (1, 6))
    b = a.clone()
    b[0, 3] = (b[0, 3] + 1) % 5
    first, second = prior.logits(a), prior.logits(b)
    torch.testing.assert_close(first[:, :4], second[:, :4])
    assert not torch.allclose(first[:, 4], second[:, 4])


def test_fitted_frequencies_are_laplace_smoothed() -> None:
    prior = IndependentPrior.fit(torch.tensor([[0, 1], [0, 2], [0, 1]]), 3)
    probabilities = prior.logits.softmax(-1).detach()
    torch.testing.assert_close(probabilities, torch.tensor([[4.0, 1.0, 1.0], [1.0, 3.0, 2.0]]) / 6)


def test_invalid_sizes_raise() -> None:
    with pytest.raises(ValueError, match="codes and positions must be positive; got codes=0"):
        IndependentPrior(0, 3)
    with pytest.raises(ValueError, match="codes and positions must be positive; got codes=4, positions=0"):
        NeighbourPrior(4, (0, 2))
