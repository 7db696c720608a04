"""Relative attention: skewing compared with the explicit form, cached decoding and clipping."""

import pytest
import torch

from parnassus.attention import (
    HeadPositions,
    RelativePositions,
    SelfAttention,
    explicit_relative_scores,
    relative_scores,
    skew,
)
from parnassus.attention.core.cache import KeyValueCache


def test_skew_of_a_small_matrix() -> None:
    """Columns by distance 2, 1, 0 become columns by key."""
    by_distance = torch.tensor([[0.0, 0.0, 1.0], [0.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    expected = torch.tensor([[1.0, 0.0, 0.0], [2.0, 3.0, 0.0], [4.0, 5.0, 6.0]])
    torch.testing.assert_close(skew(by_distance), expected)


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (1, 9), (3, 9), (8, 9)])
@pytest.mark.parametrize("distances", [1, 4, 9, 20])
def test_relative_scores_match_the_explicit_form(queries: int, keys: int, distances: int) -> None:
    torch.manual_seed(queries)
    query = torch.randn(2, 3, queries, 4, dtype=torch.float64)
    table = torch.randn(3, distances, 4, dtype=torch.float64)
    scores = relative_scores(query, table, keys)
    torch.testing.assert_close(scores, explicit_relative_scores(query, table, keys))
    m, n = queries - 1, 0  # the last query and the first key, computed explicitly
    expected = (query[:, :, m] * table[:, min(keys - 1, distances - 1)]).sum(-1)
    torch.testing.assert_close(scores[:, :, m, n], expected)


def test_gradients_match_the_explicit_form() -> None:
    torch.manual_seed(0)
    query = torch.randn(2, 2, 6, 3, dtype=torch.float64, requires_grad=True)
    table = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(2, 2, 6, 6, dtype=torch.float64)
    gradients = torch.autograd.grad((relative_scores(query, table, 6) * weights).sum(), [query, table])
    expected = torch.autograd.grad((explicit_relative_scores(query, table, 6) * weights).sum(), [query, table])
    torch.testing.assert_close(gradients, expected)


def test_cached_decoding_matches_full_pass() -> None:
    torch.manual_seed(0)
    layer = SelfAttention(8, 2, causal=True, positions=RelativePositions(2, 4, 5))
    x = torch.randn(3, 10, 8)
    cache = KeyValueCache.empty(torch.empty(3, 2, 0, 4), 10)
    with torch.no_grad():
        outputs = [layer(part, None, cache) for part in x.split([4, 1, 5], 1)]
        torch.testing.assert_close(torch.cat(outputs, 1), layer(x))


def test_scale_applies_to_both_terms() -> None:
    """softmax((Q Kᵀ + S_rel) / √d), computed from the projections."""
    torch.manual_seed(0)
    positions = RelativePositions(2, 4, 3)
    layer, x = SelfAttention(8, 2, causal=True, positions=positions), torch.randn(1, 6, 8)
    query, key, _ = layer.project(x)
    scores = (query @ key.mT + explicit_relative_scores(query, positions.table, 6)) / 2
    expected = scores.masked_fill(torch.ones(6, 6, dtype=torch.bool).triu(1), -torch.inf).softmax(-1)
    torch.testing.assert_close(layer.weights(x), expected)


def test_table_receives_gradients() -> None:
    layer = SelfAttention(8, 2, causal=True, positions=RelativePositions(2, 4, 3))
    layer(torch.randn(1, 6, 8)).square().sum().backward()
    assert isinstance(layer.positions, RelativePositions)
    assert layer.positions.table.grad is not None
    assert bool((layer.positions.table.grad != 0).any(-1).all())


def test_invalid_arguments_raise_value_error() -> None:
    assert isinstance(RelativePositions(1, 1, 1), HeadPositions)
    with pytest.raises(ValueError, match="must be at least 1; got heads=2, width=4, distances=0"):
        RelativePositions(2, 4, 0)
    with pytest.raises(ValueError, match="2 heads of width 4; got 3 of width 4"):
        RelativePositions(2, 4, 5).bias(torch.zeros(1, 3, 2, 4), 2)
    with pytest.raises(ValueError, match="got queries=4, keys=3"):
        skew(torch.zeros(4, 3))
