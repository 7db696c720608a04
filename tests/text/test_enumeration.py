"""Enumeration of all continuations with their probabilities."""

from itertools import product

import pytest
import torch

from parnassus.text import (
    NGramModel,
    enumerate_continuations,
    inclusion_probabilities,
    without_replacement_probabilities,
)

TOKENS = torch.randint(3, (80,), generator=torch.Generator().manual_seed(0))
MODEL = NGramModel.fit_interpolated(TOKENS, 2, vocabulary=3, smoothing=0.5)
PROMPT = torch.tensor([1])


def test_all_texts_of_the_requested_length_are_enumerated_without_stop_token() -> None:
    continuations = enumerate_continuations(MODEL, PROMPT, length=4)
    assert sorted(map(tuple, continuations.tokens.tolist())) == sorted(product(range(3), repeat=4))
    texts = torch.cat([PROMPT.expand(81, 1), continuations.tokens], 1)
    torch.testing.assert_close(continuations.log_probs, MODEL.log_prob(texts) - MODEL.log_prob(PROMPT[None]))
    assert float(continuations.log_probs.exp().sum()) == pytest.approx(1, abs=1e-12)


def test_probabilities_sum_to_one_with_stop_token() -> None:
    continuations = enumerate_continuations(MODEL, PROMPT, length=4, stop=2)
    assert len(continuations.tokens) == 1 + 2 + 4 + 8 + 16
    assert len({tuple(row) for row in continuations.tokens.tolist()}) == 31
    assert float(continuations.log_probs.exp().sum()) == pytest.approx(1, abs=1e-12)
    assert sorted(continuations.lengths.tolist()) == [1, 2, 2, *[3] * 4, *[4] * 24]


def test_probabilities_of_draws_without_replacement() -> None:
    probabilities = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    distribution = without_replacement_probabilities(probabilities, 2)
    assert distribution[0, 1] == pytest.approx(0.5 * 0.3 / 0.5)
    assert sum(distribution.values()) == pytest.approx(1)
    assert float(inclusion_probabilities(probabilities, 2).sum()) == pytest.approx(2)
    torch.testing.assert_close(inclusion_probabilities(probabilities, 3), torch.ones(3, dtype=torch.float64))


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"must be at most 200,000; got 3\^20"):
        enumerate_continuations(MODEL, PROMPT, length=20)
    with pytest.raises(ValueError, match="length must be at least 1; got length=0"):
        enumerate_continuations(MODEL, PROMPT, length=0)
    with pytest.raises(ValueError, match="num_draws must lie between 1 and the number of items, 2; got num_draws=3"):
        without_replacement_probabilities(torch.tensor([0.5, 0.5]), 3)
