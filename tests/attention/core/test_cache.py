"""The key-value cache."""

import pytest
import torch

from parnassus.attention import Cache, KeyValueCache, SelfAttention


def test_appended_keys_and_values_are_returned_in_order() -> None:
    keys, values = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 5, 4)
    cache = KeyValueCache.empty(keys, 5)
    assert cache.count == 0
    cache.append(keys[:, :, :2], values[:, :, :2])
    stored_keys, stored_values = cache.append(keys[:, :, 2:], values[:, :, 2:])
    assert torch.equal(stored_keys, keys)
    assert torch.equal(stored_values, values)
    assert cache.count == 5


def test_overflow_raises_value_error_and_leaves_the_cache_unchanged() -> None:
    cache = KeyValueCache.empty(torch.randn(1, 1, 1, 2), 3)
    cache.append(torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2, 2))
    with pytest.raises(ValueError, match="holds at most 3 tokens; got 4"):
        cache.append(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2))
    assert cache.count == 2


def test_rows_copies_the_selected_rows() -> None:
    layer = KeyValueCache(torch.arange(3.0).view(3, 1, 1, 1).repeat(1, 1, 2, 1), torch.zeros(3, 1, 2, 1), 1)
    selected = Cache((layer, layer)).rows(torch.tensor([2, 0, 2]))
    assert selected.count == 1
    first, second = selected.layers
    assert isinstance(first, KeyValueCache)
    assert isinstance(second, KeyValueCache)
    assert second.keys[:, 0, 0, 0].tolist() == [2.0, 0.0, 2.0]
    first.append(torch.ones(3, 1, 1, 1), torch.ones(3, 1, 1, 1))
    assert layer.count == 1
    assert layer.keys[:, 0, 1, 0].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("lengths", [(6,), (1, 1, 1, 1, 1, 1), (3, 2, 1), (1, 4, 1)])
def test_cached_decoding_matches_full_pass(lengths: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    layer = SelfAttention(8, 2, causal=True).double()
    x = torch.randn(3, 6, 8, dtype=torch.float64)
    cache = KeyValueCache.empty(layer.project(x)[1], 6)
    outputs = [layer(part, None, cache) for part in x.split(lengths, 1)]
    torch.testing.assert_close(torch.cat(outputs, 1), layer(x))
