"""The key-value cache."""

import pytest
import torch

from parnassus.attention import Cache, KeyValueCache, SelfAttention


def test_appended_keys_and_values_are_returned_in_order() -> None:
    keys, values = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 5, 4)
    memory = KeyValueCache.empty(keys, 5)
    assert memory.count == 0
    memory.append(keys[:, :, :2], values[:, :, :2])
    seen_keys, seen_values = memory.append(keys[:, :, 2:], values[:, :, 2:])
    assert torch.equal(seen_keys, keys)
    assert torch.equal(seen_values, values)
    assert memory.count == 5


def test_a_full_cache_raises_and_is_unchanged() -> None:
    memory = KeyValueCache.empty(torch.randn(1, 1, 1, 2), 3)
    memory.append(torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2, 2))
    with pytest.raises(ValueError, match="holds at most 3 tokens; got 4"):
        memory.append(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2))
    assert memory.count == 2


def test_rows_are_copies_in_the_given_order() -> None:
    layer = KeyValueCache(torch.arange(3.0).view(3, 1, 1, 1).repeat(1, 1, 2, 1), torch.zeros(3, 1, 2, 1), 1)
    chosen = Cache((layer, layer)).rows(torch.tensor([2, 0, 2]))
    assert chosen.count == 1
    first, second = chosen.layers
    assert isinstance(first, KeyValueCache)
    assert isinstance(second, KeyValueCache)
    assert second.keys[:, 0, 0, 0].tolist() == [2.0, 0.0, 2.0]
    first.append(torch.ones(3, 1, 1, 1), torch.ones(3, 1, 1, 1))
    assert layer.count == 1
    assert layer.keys[:, 0, 1, 0].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("pieces", [(6,), (1, 1, 1, 1, 1, 1), (3, 2, 1), (1, 4, 1)])
def test_decoding_with_a_cache_equals_one_pass(pieces: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    layer = SelfAttention(8, 2, causal=True).double()
    x = torch.randn(3, 6, 8, dtype=torch.float64)
    memory = KeyValueCache.empty(layer.project(x)[1], 6)
    parts = [layer(piece, None, memory) for piece in x.split(pieces, 1)]
    torch.testing.assert_close(torch.cat(parts, 1), layer(x))
