"""Linear, soft, hard and average lookup."""

from math import e

import pytest
import torch

from parnassus.attention import (
    attention_pooling,
    average_pooling,
    dot_score,
    gaussian_score,
    hard_lookup,
    hardmax,
    linear_lookup,
    soft_lookup,
)
from parnassus.probability import standard_normal

BASIS = torch.eye(8, dtype=torch.float64)
VALUES = standard_normal(8, 3)


def test_linear_lookup_with_basis_vectors() -> None:
    queries = torch.stack([BASIS[2], BASIS[2] + 2 * BASIS[4]])
    torch.testing.assert_close(linear_lookup(queries, BASIS, VALUES).output[0], VALUES[2])
    torch.testing.assert_close(linear_lookup(queries, BASIS, VALUES).output[1], VALUES[2] + 2 * VALUES[4])


def test_soft_lookup_weight_matches_closed_form() -> None:
    result = soft_lookup(BASIS[2:3], BASIS, VALUES)
    torch.testing.assert_close(result.weights[0, 2].item(), e / (e + 7))
    torch.testing.assert_close(result.output, result.weights @ VALUES)


def test_temperature_limits_are_hard_and_average_lookup() -> None:
    query = standard_normal(5, 8, seed=1)
    for score in (dot_score, gaussian_score):
        hard = hard_lookup(query, BASIS, VALUES, score=score)
        torch.testing.assert_close(soft_lookup(query, BASIS, VALUES, score=score, temperature=1e-4).output, hard.output)
        assert torch.equal(hard.output, VALUES[query.argmax(1)])
    mean = average_pooling(query, BASIS, VALUES)
    torch.testing.assert_close(mean.output, VALUES.mean(0).expand(5, 3))
    torch.testing.assert_close(soft_lookup(query, BASIS, VALUES, temperature=1e9).output, mean.output)


def test_hardmax_splits_ties_equally() -> None:
    scores = torch.tensor([[1.0, 3.0, 3.0], [5.0, 5.0, 5.0], [2.0, 1.0, 0.0]])
    expected = torch.tensor([[0.0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3], [1.0, 0.0, 0.0]])
    torch.testing.assert_close(hardmax(scores), expected)


def test_masked_keys_are_ignored_and_a_full_mask_gives_zero() -> None:
    mask = torch.ones(1, 8, dtype=torch.bool)
    mask[0, 5:] = False
    result = soft_lookup(BASIS[2:3], BASIS, VALUES, mask)
    torch.testing.assert_close(result.output, soft_lookup(BASIS[2:3, :5], BASIS[:5, :5], VALUES[:5]).output)
    assert soft_lookup(BASIS[2:3], BASIS, VALUES, ~torch.ones_like(mask)).output.abs().max() == 0


def test_batched_lookup_matches_single_lookups() -> None:
    query, key, value = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 6)
    batched = soft_lookup(query, key, value)
    assert batched.output.shape == (2, 3, 6)
    torch.testing.assert_close(batched.output[1], soft_lookup(query[1], key[1], value[1]).output)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="temperature must be positive; got temperature=0"):
        soft_lookup(BASIS, BASIS, VALUES, temperature=0.0)
    with pytest.raises(ValueError, match="one value per key; got 0 keys, 0 values"):
        attention_pooling(BASIS, BASIS[:0], VALUES[:0], dot_score)
