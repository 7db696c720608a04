"""Sparse masks, and local attention compared with dense masked attention."""

import pytest
import torch

from parnassus.attention import KeyValueCache, attention, causal_mask
from parnassus.attention.efficient.sparse import (
    LocalSelfAttention,
    band_mask,
    block_mask,
    count_pairs,
    dilated_mask,
    global_mask,
    layers_until_connected,
    local_attention,
    random_mask,
    strided_mask,
)


def test_small_masks_match_their_patterns() -> None:
    def as_text(mask: torch.Tensor) -> list[str]:
        return ["".join(".x"[int(is_visible)] for is_visible in row) for row in mask]

    assert as_text(band_mask(5, 1)) == ["xx...", "xxx..", ".xxx.", "..xxx", "...xx"]
    assert as_text(dilated_mask(5, 1, 2)) == ["x.x..", ".x.x.", "x.x.x", ".x.x.", "..x.x"]
    assert as_text(block_mask(5, 2)) == ["xx...", "xx...", "..xx.", "..xx.", "....x"]
    assert as_text(global_mask(4, [1])) == [".x..", "xxxx", ".x..", ".x.."]
    assert as_text(strided_mask(6, 3)) == ["xxxx..", "xxxxx.", "xxxxxx", "xxxxxx", ".xxxxx", "..xxxx"]


def test_random_mask_has_the_requested_number_of_keys_per_query() -> None:
    mask = random_mask(20, 3, generator=torch.Generator().manual_seed(0))
    assert mask.sum(1).tolist() == [3] * 20
    assert mask.sum(0).unique().numel() > 1  # keys are drawn independently for each query


def test_count_pairs_matches_closed_forms() -> None:
    for length, reach in ((10, 3), (50, 7), (6, 5)):
        assert int(count_pairs(band_mask(length, reach))) == length * (2 * reach + 1) - reach * (reach + 1)
    assert int(count_pairs(block_mask(12, 4))) == 12 * 4
    assert int(count_pairs(global_mask(12, [0, 5]))) == 2 * 2 * 12 - 4


def test_layers_until_connected_matches_known_values() -> None:
    assert layers_until_connected(band_mask(10, 3)) == 3  # from position 0 to position 9
    assert layers_until_connected(global_mask(10, [4])) == 2
    assert layers_until_connected(strided_mask(16, 4)) == 2
    assert layers_until_connected(block_mask(10, 5)) is None


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("time", "reach"), [(1, 1), (7, 1), (12, 3), (13, 4), (5, 5), (5, 9)])
def test_local_attention_matches_attention_with_band_mask(time: int, reach: int, causal: bool) -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, time, 4, dtype=torch.float64) for _ in range(3))
    mask = band_mask(time, reach)
    mask = mask & causal_mask(time) if causal else mask
    exact = attention(query, key, value, mask).output
    assert torch.allclose(local_attention(query, key, value, reach, causal=causal), exact, atol=1e-12)
    single = local_attention(query[0, 0], key[0, 0], value[0, 0], reach, causal=causal)
    assert torch.allclose(single, exact[0, 0], atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_output_is_the_weighted_mean_of_the_values(causal: bool) -> None:
    torch.manual_seed(0)
    layer = LocalSelfAttention(8, 2, reach=3, causal=causal).double()
    x = torch.randn(2, 11, 8, dtype=torch.float64)
    _, _, value = layer.project(x)
    expected = layer.out_proj((layer.weights(x) @ value).transpose(1, 2).flatten(-2))
    assert torch.allclose(layer(x), expected, atol=1e-12)
    mask = torch.rand(2, 11, 11) < 0.7
    expected_with_mask = layer.out_proj((layer.weights(x, mask) @ value).transpose(1, 2).flatten(-2))
    assert torch.allclose(layer(x, mask), expected_with_mask, atol=1e-12)


def test_cached_decoding_matches_full_pass() -> None:
    torch.manual_seed(0)
    layer = LocalSelfAttention(8, 2, reach=3, causal=True).double()
    x = torch.randn(2, 11, 8, dtype=torch.float64)
    cache = layer.empty_cache(2, 11)
    assert isinstance(cache, KeyValueCache)
    outputs = [layer(x[:, :4], None, cache)] + [layer(x[:, t : t + 1], None, cache) for t in range(4, 11)]
    assert torch.allclose(torch.cat(outputs, 1), layer(x), atol=1e-12)


def test_invalid_sizes_raise_value_error() -> None:
    with pytest.raises(ValueError, match="reach must be at least 1; got reach=0"):
        band_mask(4, 0)
    with pytest.raises(ValueError, match="reach must be at least 1; got reach=0"):
        local_attention(torch.zeros(4, 2), torch.zeros(4, 2), torch.zeros(4, 2), 0)
    with pytest.raises(ValueError, match="dilation must be at least 1; got dilation=0"):
        dilated_mask(4, 1, 0)
    with pytest.raises(ValueError, match="stride must be at least 1; got stride=-1"):
        strided_mask(4, -1)
    with pytest.raises(ValueError, match="size must be at least 1; got size=0"):
        block_mask(4, 0)
    with pytest.raises(ValueError, match=r"between 0 and 3; got \[4\]"):
        global_mask(4, [4])
    with pytest.raises(ValueError, match="between 1 and length=4; got keys=5"):
        random_mask(4, 5)
    with pytest.raises(ValueError, match="reach must be at least 1"):
        LocalSelfAttention(8, 2, reach=0)
