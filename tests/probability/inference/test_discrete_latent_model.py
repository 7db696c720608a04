"""A discrete latent-variable model compared with hand computations."""

from math import log

import pytest
import torch

from parnassus.probability import DiscreteLatentModel, kl_to_joint

MODEL = DiscreteLatentModel(
    torch.tensor([0.25, 0.75], dtype=torch.float64), torch.tensor([[0.5, 0.5], [0.2, 0.8]], dtype=torch.float64)
)


def test_evidence_posterior_and_joint_match_hand_computation() -> None:
    torch.testing.assert_close(MODEL.joint, torch.tensor([[0.125, 0.15], [0.125, 0.6]], dtype=torch.float64))
    torch.testing.assert_close(MODEL.evidence, torch.tensor([0.275, 0.725], dtype=torch.float64))
    torch.testing.assert_close(MODEL.posterior[0], torch.tensor([5 / 11, 6 / 11], dtype=torch.float64))


def test_terms_of_a_deterministic_posterior_match_hand_computation() -> None:
    """Here q(z = 0 | x) = 1 for every x."""
    terms = MODEL.terms(torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64))
    torch.testing.assert_close(terms.log_likelihood, torch.tensor([log(0.5)] * 2, dtype=torch.float64))
    torch.testing.assert_close(terms.kl_to_prior, torch.tensor([log(4)] * 2, dtype=torch.float64))
    torch.testing.assert_close(terms.elbo, torch.tensor([log(0.125)] * 2, dtype=torch.float64))
    torch.testing.assert_close(terms.log_joint, terms.elbo)
    torch.testing.assert_close(terms.entropy, torch.zeros(2, dtype=torch.float64))
    torch.testing.assert_close(terms.gap[0], torch.tensor(log(11 / 5), dtype=torch.float64))


def test_elbo_of_the_posterior_is_the_log_evidence() -> None:
    torch.testing.assert_close(MODEL.terms(MODEL.posterior).elbo, MODEL.evidence.log())


def test_elbo_is_minus_infinity_for_impossible_latent_states() -> None:
    deterministic = DiscreteLatentModel(torch.tensor([0.5, 0.5]), torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    terms = deterministic.terms(torch.full((2, 2), 0.5))
    assert terms.elbo[1] == -torch.inf
    assert terms.gap[1] == torch.inf
    assert kl_to_joint(torch.full((2, 2), 0.5), deterministic.joint)[1] == torch.inf


def test_invalid_tables_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"a row of prior sums to 1\.5"):
        DiscreteLatentModel(torch.tensor([0.75, 0.75]), MODEL.likelihood.float())
    with pytest.raises(ValueError, match=r"P\(observation\) must be positive; it is 0 for observations \[1\]"):
        DiscreteLatentModel(torch.tensor([0.5, 0.5]), torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    with pytest.raises(ValueError, match=r"one row per observation .* got shape \(3, 2\)"):
        MODEL.terms(torch.full((3, 2), 0.5, dtype=torch.float64))
