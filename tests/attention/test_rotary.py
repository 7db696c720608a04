"""Rotary positions, against rotations by complex numbers and by matrices, with and without a cache."""

import pytest
import torch

from parnassus.attention import HeadPositions, Rotary, SelfAttention, frequencies, long_range_bound, rotate, rotation
from parnassus.attention.cache import KeyValues


def test_it_is_a_product_of_complex_numbers() -> None:
    """(x_1 + i x_2) e^{imθ}, an implementation of its own."""
    torch.manual_seed(0)
    x = torch.randn(2, 3, 7, 8, dtype=torch.float64)
    angle = torch.arange(7)[:, None] * frequencies(8)
    as_complex = torch.view_as_complex(x.unflatten(-1, (4, 2))) * torch.polar(torch.ones_like(angle), angle)
    expected = torch.view_as_real(as_complex).flatten(-2)
    torch.testing.assert_close(rotate(x, angle.cos(), angle.sin()), expected)


def test_it_is_the_matrix_without_forming_it() -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 1, 5, 6)
    turned = Rotary(6, 20).turn(x, 3)
    by_matrix = torch.stack([rotation(3.0 + t, 6).float() @ x[0, 0, t] for t in range(5)])
    torch.testing.assert_close(turned[0, 0], by_matrix, atol=1e-5, rtol=0)


def test_the_first_place_stands_still_and_lengths_stay() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 2, 9, 4)
    turned = Rotary(4, 9).turn(x, 0)
    torch.testing.assert_close(turned[:, :, 0], x[:, :, 0])
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    assert not torch.allclose(turned[:, :, 1:], x[:, :, 1:])


def test_reading_on_from_a_cache_gives_what_reading_at_once_gives() -> None:
    torch.manual_seed(0)
    layer = SelfAttention(8, 2, causal=True, positions=Rotary(4, 12))
    x = torch.randn(3, 10, 8)
    cache = KeyValues.empty(torch.empty(3, 2, 0, 4), 12)
    with torch.no_grad():
        pieces = [layer(part, None, cache) for part in x.split([4, 1, 5], 1)]
        torch.testing.assert_close(torch.cat(pieces, 1), layer(x))


def test_places_matter_and_one_table_serves_half_precision() -> None:
    torch.manual_seed(0)
    turning, x = Rotary(4, 6), torch.randn(1, 2, 6, 4)
    assert isinstance(turning, HeadPositions)
    turning.bias(x, 6)  # says nothing
    assert turning.turn(x.bfloat16(), 0).dtype == torch.bfloat16
    assert not turning.state_dict()  # nothing to save: the waves are known


def test_the_bound_begins_with_all_hands_together() -> None:
    """At distance 0 |S_j| = j, so their sum is d/2 (d/2 + 1) / 2."""
    bound = long_range_bound(torch.tensor([0.0, 1.0, 100.0]), 16)
    assert float(bound[0]) == pytest.approx(8 * 9 / 2)
    assert bool((bound[1:] < bound[0]).all())


def test_what_cannot_work_gets_a_sentence() -> None:
    turning = Rotary(8, 10)
    with pytest.raises(ValueError, match="there are 10 places; got tokens up to place 12"):
        turning.turn(torch.zeros(1, 1, 4, 8), 8)
    with pytest.raises(ValueError, match="for heads of width 8; got heads of width 4"):
        turning.turn(torch.zeros(1, 1, 4, 4), 0)
    with pytest.raises(ValueError, match=r"width must be even, .* got width=5"):
        Rotary(5, 10)
    with pytest.raises(ValueError, match="at least one place; got places=0"):
        Rotary(4, 0)
