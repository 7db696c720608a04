"""Token mixing by depthwise convolution."""

import pytest
import torch
from torch import nn

from parnassus.attention import feed_forward
from parnassus.attention.efficient.neighbour_mixing import MetaFormerBlock, NeighbourMixing


def test_neighbour_mixing_is_a_weighted_sum_over_neighbours() -> None:
    torch.manual_seed(0)
    layer = NeighbourMixing(3, 1).double()
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    padded = torch.cat([x.new_zeros(2, 1, 3), x, x.new_zeros(2, 1, 3)], 1)
    weight = layer.filter.weight[:, 0].T  # (offset, feature)
    parts = [weight[s] * padded[:, s : s + 5] for s in range(3)]
    assert layer.filter.bias is not None
    filtered = torch.stack(parts).sum(0) + layer.filter.bias
    torch.testing.assert_close(layer(x), layer.mix(filtered.relu()))


def test_masked_positions_have_no_effect() -> None:
    torch.manual_seed(0)
    block = MetaFormerBlock(NeighbourMixing(8, 2), feed_forward(8), norm=lambda: nn.LayerNorm(8))
    x = torch.randn(1, 6, 8)
    longer = torch.cat([x, torch.randn(1, 3, 8)], 1)
    mask = (torch.arange(9) < 6)[None, None]
    torch.testing.assert_close(block(longer, mask)[:, :6], block(x))


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="got reach=0"):
        NeighbourMixing(8, 0)
