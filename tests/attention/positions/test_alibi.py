"""ALiBi: slopes, bias and cached decoding."""

import pytest
import torch

from parnassus.attention import Alibi, HeadPositions, SelfAttention, alibi_bias, alibi_slopes
from parnassus.attention.core.cache import KeyValueCache


def test_slopes_of_eight_heads_match_the_paper() -> None:
    assert alibi_slopes(8).tolist() == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


@pytest.mark.parametrize("heads", [1, 2, 3, 5, 6, 7, 12, 16, 20])
def test_slopes_are_distinct(heads: int) -> None:
    slopes = alibi_slopes(heads)
    assert len(slopes) == heads == len(set(slopes.tolist()))
    assert bool(((slopes > 0) & (slopes < 1)).all())


def test_twelve_heads_add_every_second_slope_of_sixteen_heads() -> None:
    expected = torch.cat([alibi_slopes(8), 2.0 ** torch.tensor([-0.5, -1.5, -2.5, -3.5])])
    torch.testing.assert_close(alibi_slopes(12), expected)


def test_bias_is_the_slope_times_the_distance() -> None:
    bias = alibi_bias(torch.tensor([0.5, 2.0]), 2, 4)  # the queries are at positions 2 and 3
    expected = torch.tensor([[2.0, 1.0, 0.0, 1.0], [3.0, 2.0, 1.0, 0.0]])
    torch.testing.assert_close(bias, torch.stack([-0.5 * expected, -2 * expected]))


def test_cached_decoding_matches_full_pass() -> None:
    torch.manual_seed(0)
    layer = SelfAttention(8, 2, causal=True, positions=Alibi(2))
    x = torch.randn(3, 10, 8)
    cache = KeyValueCache.empty(torch.empty(3, 2, 0, 4), 10)
    with torch.no_grad():
        outputs = [layer(part, None, cache) for part in x.split([3, 1, 6], 1)]
        torch.testing.assert_close(torch.cat(outputs, 1), layer(x))


def test_weights_of_equal_keys_decay_geometrically() -> None:
    """For equal keys, the weights are a geometric sequence in the distance."""
    layer = SelfAttention(4, 1, causal=True, positions=Alibi(1))
    weights = layer.weights(torch.ones(1, 6, 4))[0, 0, -1].detach()
    ratio = torch.exp(alibi_slopes(1))
    torch.testing.assert_close(weights[1:] / weights[:-1], ratio.expand(5))


def test_invalid_arguments_raise_value_error() -> None:
    assert isinstance(Alibi(2), HeadPositions)
    with pytest.raises(ValueError, match="heads must be at least 1; got heads=0"):
        Alibi(0)
    with pytest.raises(ValueError, match="must have 4 heads; got 2"):
        Alibi(4).bias(torch.zeros(1, 2, 3, 4), 3)
    with pytest.raises(ValueError, match="got queries=5, keys=3"):
        alibi_bias(torch.ones(1), 5, 3)
