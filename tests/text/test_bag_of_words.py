"""Bag-of-words counts."""

from collections import Counter

import pytest
import torch

from parnassus.text.bag_of_words import bag_of_words


def test_counts_tokens_per_row() -> None:
    tokens = torch.randint(7, (3, 4, 20), generator=torch.Generator().manual_seed(0))
    bags = bag_of_words(tokens, 9)
    for row in range(3):
        for column in range(4):
            counts = Counter(tokens[row, column].tolist())
            assert bags[row, column].tolist() == [counts[token] for token in range(9)]


def test_empty_text_has_zero_counts() -> None:
    assert bag_of_words(torch.zeros(2, 0, dtype=torch.long), 3).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_token_out_of_range_raises_value_error() -> None:
    with pytest.raises(ValueError, match="tokens must lie between 0 and 4; got 2 to 5"):
        bag_of_words(torch.tensor([2, 5]), 5)
