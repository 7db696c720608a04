"""A cache holds what was put in, in order, and says when it is full."""

import pytest
import torch

from parnassus.attention import Cache, KeyValues, SelfAttention


def test_what_was_appended_comes_back_in_order() -> None:
    keys, values = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 5, 4)
    memory = KeyValues.empty(keys, 5)
    assert memory.count == 0
    memory.append(keys[:, :, :2], values[:, :, :2])
    seen_keys, seen_values = memory.append(keys[:, :, 2:], values[:, :, 2:])
    assert torch.equal(seen_keys, keys)
    assert torch.equal(seen_values, values)
    assert memory.count == 5


def test_a_full_cache_says_so_and_stays_as_it_was() -> None:
    memory = KeyValues.empty(torch.randn(1, 1, 1, 2), 3)
    memory.append(torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2, 2))
    with pytest.raises(ValueError, match="holds 3 tokens; reading on would make 4"):
        memory.append(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2))
    assert memory.count == 2


def test_rows_are_copies_in_the_order_asked_for() -> None:
    layer = KeyValues(torch.arange(3.0).view(3, 1, 1, 1).repeat(1, 1, 2, 1), torch.zeros(3, 1, 2, 1), 1)
    chosen = Cache((layer, layer)).rows(torch.tensor([2, 0, 2]))
    assert chosen.count == 1
    first, second = chosen.layers
    assert isinstance(first, KeyValues)
    assert isinstance(second, KeyValues)
    assert second.keys[:, 0, 0, 0].tolist() == [2.0, 0.0, 2.0]
    first.append(torch.ones(3, 1, 1, 1), torch.ones(3, 1, 1, 1))
    assert layer.count == 1
    assert layer.keys[:, 0, 1, 0].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("pieces", [(6,), (1, 1, 1, 1, 1, 1), (3, 2, 1), (1, 4, 1)])
def test_reading_on_gives_what_reading_at_once_gives(pieces: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    layer = SelfAttention(8, 2, causal=True).double()
    x = torch.randn(3, 6, 8, dtype=torch.float64)
    memory = KeyValues.empty(layer.project(x)[1], 6)
    parts = [layer(piece, None, memory) for piece in x.split(pieces, 1)]
    torch.testing.assert_close(torch.cat(parts, 1), layer(x))
