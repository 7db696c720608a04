"""Codes whose numbers are known beforehand."""

from math import log

import pytest
import torch
from torch import Tensor

from parnassus.probability import LatentTable, aggregate, bayes_decoder, code_numbers, encoder_joint, prediction_numbers

FAIR = torch.full((4,), 0.25, dtype=torch.float64)
PAIRS = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
"""A code of one bit for four equally likely letters: which half?"""


def number(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def test_one_bit_of_two() -> None:
    """The code keeps one bit, costs one with a fair prior, and leaves one to guess."""
    numbers = code_numbers(FAIR, PAIRS, LatentTable(FAIR[:2] * 2, bayes_decoder(FAIR, PAIRS)))
    for name in ("information", "rate", "distortion"):
        torch.testing.assert_close(getattr(numbers, name), number(log(2)))
    torch.testing.assert_close(numbers.negative_elbo, number(2 * log(2)))
    torch.testing.assert_close(numbers.mismatch, number(0.0))


def test_a_wrong_price_list_costs_the_mismatch() -> None:
    prior = torch.tensor([0.2, 0.8], dtype=torch.float64)
    numbers = code_numbers(FAIR, PAIRS, LatentTable(prior, bayes_decoder(FAIR, PAIRS)))
    torch.testing.assert_close(numbers.rate, number(-0.5 * log(0.2) - 0.5 * log(0.8)))
    torch.testing.assert_close(numbers.mismatch, numbers.rate - log(2))


def test_the_bayes_decoder_inverts_the_encoder() -> None:
    decoder = bayes_decoder(FAIR, PAIRS)
    torch.testing.assert_close(decoder[0], torch.tensor([0.5, 0.5, 0.0, 0.0], dtype=torch.float64))
    never = torch.nn.functional.pad(PAIRS, (0, 1))
    torch.testing.assert_close(bayes_decoder(FAIR, never)[2], FAIR)
    torch.testing.assert_close(aggregate(FAIR, never), torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64))


def test_a_code_that_keeps_the_half_tells_all_of_a_label_that_is_the_half() -> None:
    told = prediction_numbers(FAIR, PAIRS, PAIRS)
    torch.testing.assert_close(torch.stack(told), torch.tensor([log(2), log(2), 0.0], dtype=torch.float64))
    across = torch.eye(2, dtype=torch.float64).repeat(2, 1)  # the other bit of the letter
    told = prediction_numbers(FAIR, PAIRS, across)
    torch.testing.assert_close(torch.stack(told), torch.tensor([0.0, log(2), log(2)], dtype=torch.float64))


def test_a_decoder_that_rules_the_data_out_has_infinite_distortion() -> None:
    model = LatentTable(FAIR[:2] * 2, bayes_decoder(FAIR, PAIRS).flip(0))
    assert code_numbers(FAIR, PAIRS, model).distortion == torch.inf


def test_what_does_not_fit_gets_a_sentence() -> None:
    thirds = torch.full((3,), 1 / 3, dtype=torch.float64)
    with pytest.raises(ValueError, match="a row for every observation; got 4 rows, 3 of them"):
        encoder_joint(thirds, PAIRS)
    with pytest.raises(ValueError, match="a row for each of 4 observations"):
        code_numbers(thirds, PAIRS[:3], LatentTable(FAIR[:2] * 2, bayes_decoder(FAIR, PAIRS)))
