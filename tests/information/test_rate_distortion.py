"""Rate, distortion and information of codes compared with closed forms."""

from math import log

import pytest
import torch
from torch import Tensor

from parnassus.information import (
    aggregated_posterior,
    bayes_decoder,
    encoder_joint,
    label_information,
    rate_distortion_terms,
)
from parnassus.probability import DiscreteLatentModel

FAIR = torch.full((4,), 0.25, dtype=torch.float64)
PAIRS = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
"""A one-bit code of four equally likely symbols."""


def scalar(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def test_one_bit_code_of_a_two_bit_source() -> None:
    """Information, rate under the uniform prior and distortion are one bit each."""
    terms = rate_distortion_terms(FAIR, PAIRS, DiscreteLatentModel(FAIR[:2] * 2, bayes_decoder(FAIR, PAIRS)))
    for name in ("information", "rate", "distortion"):
        torch.testing.assert_close(getattr(terms, name), scalar(log(2)))
    torch.testing.assert_close(terms.negative_elbo, scalar(2 * log(2)))
    torch.testing.assert_close(terms.marginal_kl, scalar(0.0))


def test_mismatched_prior_increases_the_rate() -> None:
    prior = torch.tensor([0.2, 0.8], dtype=torch.float64)
    terms = rate_distortion_terms(FAIR, PAIRS, DiscreteLatentModel(prior, bayes_decoder(FAIR, PAIRS)))
    torch.testing.assert_close(terms.rate, scalar(-0.5 * log(0.2) - 0.5 * log(0.8)))
    torch.testing.assert_close(terms.marginal_kl, terms.rate - log(2))


def test_bayes_decoder_inverts_the_encoder() -> None:
    decoder = bayes_decoder(FAIR, PAIRS)
    torch.testing.assert_close(decoder[0], torch.tensor([0.5, 0.5, 0.0, 0.0], dtype=torch.float64))
    padded = torch.nn.functional.pad(PAIRS, (0, 1))
    torch.testing.assert_close(bayes_decoder(FAIR, padded)[2], FAIR)
    torch.testing.assert_close(aggregated_posterior(FAIR, padded), torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64))


def test_label_information_matches_known_values() -> None:
    information = label_information(FAIR, PAIRS, PAIRS)
    torch.testing.assert_close(torch.stack(information), torch.tensor([log(2), log(2), 0.0], dtype=torch.float64))
    other_bit = torch.eye(2, dtype=torch.float64).repeat(2, 1)  # independent of the coded bit
    information = label_information(FAIR, PAIRS, other_bit)
    torch.testing.assert_close(torch.stack(information), torch.tensor([0.0, log(2), log(2)], dtype=torch.float64))


def test_decoder_with_zero_likelihood_has_infinite_distortion() -> None:
    model = DiscreteLatentModel(FAIR[:2] * 2, bayes_decoder(FAIR, PAIRS).flip(0))
    assert rate_distortion_terms(FAIR, PAIRS, model).distortion == torch.inf


def test_invalid_shapes_raise_value_error() -> None:
    thirds = torch.full((3,), 1 / 3, dtype=torch.float64)
    with pytest.raises(ValueError, match="one row per observation; got 4 rows, 3 observations"):
        encoder_joint(thirds, PAIRS)
    with pytest.raises(ValueError, match="one row per observation and one column per latent state, 4"):
        rate_distortion_terms(thirds, PAIRS[:3], DiscreteLatentModel(FAIR[:2] * 2, bayes_decoder(FAIR, PAIRS)))
