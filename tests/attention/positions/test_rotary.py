"""Rotary positions compared with complex multiplication and rotation matrices; cached decoding."""

import pytest
import torch

from parnassus.attention import (
    HeadPositions,
    Rotary,
    SelfAttention,
    apply_rotation,
    frequencies,
    long_range_bound,
    rotation_matrix,
)
from parnassus.attention.core.cache import KeyValueCache


def test_rotation_matches_complex_multiplication() -> None:
    """The reference is (x_1 + i x_2) e^{imθ}."""
    torch.manual_seed(0)
    x = torch.randn(2, 3, 7, 8, dtype=torch.float64)
    angle = torch.arange(7)[:, None] * frequencies(8)
    as_complex = torch.view_as_complex(x.unflatten(-1, (4, 2))) * torch.polar(torch.ones_like(angle), angle)
    expected = torch.view_as_real(as_complex).flatten(-2)
    torch.testing.assert_close(apply_rotation(x, angle.cos(), angle.sin()), expected)


def test_rotation_matches_the_rotation_matrix() -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 1, 5, 6)
    rotated = Rotary(6, 20).rotate(x, 3)
    expected = torch.stack([rotation_matrix(3.0 + t, 6).float() @ x[0, 0, t] for t in range(5)])
    torch.testing.assert_close(rotated[0, 0], expected, atol=1e-5, rtol=0)


def test_position_zero_is_unchanged_and_norms_are_preserved() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 2, 9, 4)
    rotated = Rotary(4, 9).rotate(x, 0)
    torch.testing.assert_close(rotated[:, :, 0], x[:, :, 0])
    torch.testing.assert_close(rotated.norm(dim=-1), x.norm(dim=-1))
    assert not torch.allclose(rotated[:, :, 1:], x[:, :, 1:])


def test_cached_decoding_matches_full_pass() -> None:
    torch.manual_seed(0)
    layer = SelfAttention(8, 2, causal=True, positions=Rotary(4, 12))
    x = torch.randn(3, 10, 8)
    cache = KeyValueCache.empty(torch.empty(3, 2, 0, 4), 12)
    with torch.no_grad():
        outputs = [layer(part, None, cache) for part in x.split([4, 1, 5], 1)]
        torch.testing.assert_close(torch.cat(outputs, 1), layer(x))


def test_half_precision_is_supported_and_state_dict_is_empty() -> None:
    torch.manual_seed(0)
    rotary, x = Rotary(4, 6), torch.randn(1, 2, 6, 4)
    assert isinstance(rotary, HeadPositions)
    rotary.bias(x, 6)  # returns None
    assert rotary.rotate(x.bfloat16(), 0).dtype == torch.bfloat16
    assert not rotary.state_dict()  # buffers are not persistent


def test_long_range_bound_matches_closed_form_at_distance_zero() -> None:
    """At distance 0, |S_j| = j with sum d/2 (d/2 + 1) / 2."""
    bound = long_range_bound(torch.tensor([0.0, 1.0, 100.0]), 16)
    assert float(bound[0]) == pytest.approx(8 * 9 / 2)
    assert bool((bound[1:] < bound[0]).all())


def test_invalid_arguments_raise_value_error() -> None:
    rotary = Rotary(8, 10)
    with pytest.raises(ValueError, match="there are 10 positions; got tokens up to position 12"):
        rotary.rotate(torch.zeros(1, 1, 4, 8), 8)
    with pytest.raises(ValueError, match="heads must have width 8; got width 4"):
        rotary.rotate(torch.zeros(1, 1, 4, 4), 0)
    with pytest.raises(ValueError, match="width must be positive and even; got width=5"):
        Rotary(5, 10)
    with pytest.raises(ValueError, match="max_length must be at least 1; got max_length=0"):
        Rotary(4, 0)
