"""Looking things up: exactly, softly, and in the limits between."""

from math import e

import pytest
import torch

from parnassus.attention import (
    average_pooling,
    best_of,
    dot_score,
    gaussian_score,
    hard_lookup,
    linear_lookup,
    pool,
    soft_lookup,
)

BASIS = torch.eye(8, dtype=torch.float64)
VALUES = torch.randn(8, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_basis_vectors_find_their_values_and_sums_of_them() -> None:
    asked = torch.stack([BASIS[2], BASIS[2] + 2 * BASIS[4]])
    torch.testing.assert_close(linear_lookup(asked, BASIS, VALUES).output[0], VALUES[2])
    torch.testing.assert_close(linear_lookup(asked, BASIS, VALUES).output[1], VALUES[2] + 2 * VALUES[4])


def test_a_soft_hit_has_weight_e_over_e_plus_n_minus_one() -> None:
    found = soft_lookup(BASIS[2:3], BASIS, VALUES)
    torch.testing.assert_close(found.weights[0, 2].item(), e / (e + 7))
    torch.testing.assert_close(found.output, found.weights @ VALUES)


def test_cold_is_hard_and_hot_is_the_mean() -> None:
    query = torch.randn(5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for score in (dot_score, gaussian_score):
        hard = hard_lookup(query, BASIS, VALUES, score=score)
        torch.testing.assert_close(soft_lookup(query, BASIS, VALUES, score=score, temperature=1e-4).output, hard.output)
        assert torch.equal(hard.output, VALUES[query.argmax(1)])
    mean = average_pooling(query, BASIS, VALUES)
    torch.testing.assert_close(mean.output, VALUES.mean(0).expand(5, 3))
    torch.testing.assert_close(soft_lookup(query, BASIS, VALUES, temperature=1e9).output, mean.output)


def test_the_best_share_their_weight() -> None:
    scores = torch.tensor([[1.0, 3.0, 3.0], [5.0, 5.0, 5.0], [2.0, 1.0, 0.0]])
    expected = torch.tensor([[0.0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3], [1.0, 0.0, 0.0]])
    torch.testing.assert_close(best_of(scores), expected)


def test_a_mask_hides_keys_and_hiding_all_gives_zero() -> None:
    mask = torch.ones(1, 8, dtype=torch.bool)
    mask[0, 5:] = False
    found = soft_lookup(BASIS[2:3], BASIS, VALUES, mask)
    torch.testing.assert_close(found.output, soft_lookup(BASIS[2:3, :5], BASIS[:5, :5], VALUES[:5]).output)
    assert soft_lookup(BASIS[2:3], BASIS, VALUES, ~torch.ones_like(mask)).output.abs().max() == 0


def test_a_batch_is_looked_up_one_by_one() -> None:
    query, key, value = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 6)
    together = soft_lookup(query, key, value)
    assert together.output.shape == (2, 3, 6)
    torch.testing.assert_close(together.output[1], soft_lookup(query[1], key[1], value[1]).output)


def test_what_cannot_work_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="the temperature must be positive; got temperature=0"):
        soft_lookup(BASIS, BASIS, VALUES, temperature=0.0)
    with pytest.raises(ValueError, match="at least one key, and a value for each; got 0 keys and 0 values"):
        pool(BASIS, BASIS[:0], VALUES[:0], dot_score)
