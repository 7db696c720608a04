"""Causal, length and padding masks."""

import pytest
import torch

from parnassus.attention import causal_mask, length_mask
from parnassus.layers import padding_mask


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (4, 4), (2, 5), (1, 6)])
def test_causal_mask_allows_own_and_earlier_keys(queries: int, keys: int) -> None:
    mask = causal_mask(queries, keys)
    for query in range(queries):
        for key in range(keys):
            assert bool(mask[query, key]) == (key <= query + keys - queries)


def test_fewer_keys_than_queries_raise_value_error() -> None:
    with pytest.raises(ValueError, match="got queries=5, keys=3"):
        causal_mask(5, 3)


def test_length_mask_per_sequence_and_per_query() -> None:
    assert length_mask(torch.tensor([2, 0]), 3).tolist() == [[[True, True, False]], [[False, False, False]]]
    by_query = length_mask(torch.tensor([[1, 3]]), 3)  # (batch, queries): one length per query
    assert by_query.shape == (1, 2, 1, 3)
    assert by_query[0, :, 0].tolist() == [[True, False, False], [True, True, True]]


@pytest.mark.parametrize("length", [-1, 4])
def test_length_out_of_range_raises_value_error(length: int) -> None:
    with pytest.raises(ValueError, match="between 0 and keys=3"):
        length_mask(torch.tensor([length]), 3)


def test_padding_mask_excludes_padding_tokens() -> None:
    tokens = torch.tensor([[5, 2, 0], [0, 7, 7]])
    assert padding_mask(tokens).tolist() == [[[True, True, False]], [[False, True, True]]]
    assert padding_mask(tokens, padding=7)[1, 0].tolist() == [True, False, False]
