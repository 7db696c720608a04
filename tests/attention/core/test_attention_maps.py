"""Attention maps of language models and decoders, their entropy and distance."""

from collections.abc import Callable
from math import log
from typing import cast

import pytest
import torch
from torch import Tensor, nn

from parnassus.attention import (
    Block,
    DecoderBlock,
    LanguageModel,
    SelfAttention,
    attention_distance,
    attention_entropy,
    attention_maps,
    cross_attention,
    feed_forward,
    gpt,
    length_mask,
    rotary_gpt,
)
from parnassus.attention.core.self_attention import join_heads


class DecoderWithMask(nn.Module):
    """A decoder block called with memory and mask as keyword arguments."""

    def __init__(self) -> None:
        super().__init__()
        attention = SelfAttention(8, 2, causal=True, dropout=0.5)
        self.block = DecoderBlock(attention, cross_attention(8, 4), feed_forward(8), norm=lambda: nn.LayerNorm(8))

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        mask = length_mask(torch.full((len(x),), 2), memory.shape[1])
        decoded: Tensor = self.block(x, memory, memory_mask=mask)
        return decoded


@pytest.mark.parametrize("build", [gpt, rotary_gpt])
def test_language_model_has_one_map_per_layer(build: Callable[..., LanguageModel]) -> None:
    torch.manual_seed(0)
    model = build(11, 16, width=8, heads=2, depth=3)
    maps = attention_maps(model, torch.randint(11, (2, 7)))
    assert list(maps) == ["blocks.0.attention", "blocks.1.attention", "blocks.2.attention"]
    for weights in maps.values():
        assert weights.shape == (2, 2, 7, 7)
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 7))
        assert (weights.triu(1) == 0).all()


def test_maps_match_the_attention_weights_of_the_layer() -> None:
    torch.manual_seed(0)
    model, tokens = gpt(11, 16, width=8, heads=2, depth=1), torch.randint(11, (2, 7))
    block = cast("Block", model.blocks[0])
    x = block.norms[0](model.embedding(tokens))
    (weights,) = attention_maps(model, tokens).values()
    attended = weights @ block.attention.project(x)[2]
    torch.testing.assert_close(block.attention.out_proj(join_heads(attended)), block.attention(x))


def test_decoder_has_self_and_cross_attention_maps_with_masks() -> None:
    torch.manual_seed(0)
    model = DecoderWithMask()
    model.block.cross.eval()
    maps = attention_maps(model, torch.randn(3, 5, 8), torch.randn(3, 6, 8))
    assert {name: tuple(weights.shape) for name, weights in maps.items()} == {
        "block.attention": (3, 2, 5, 5),
        "block.cross": (3, 4, 5, 6),
    }
    assert (maps["block.cross"][..., 2:] == 0).all()
    assert model.training  # modes and hooks are restored
    assert not model.block.cross.training
    assert not model.block.attention._forward_pre_hooks
    assert "attend" not in vars(model.block.cross)


def test_model_without_attention_raises_value_error() -> None:
    with pytest.raises(ValueError, match="an attention layer; Linear has none"):
        attention_maps(nn.Linear(2, 2), torch.zeros(1, 2))


def test_entropy_of_one_hot_and_uniform_weights() -> None:
    weights = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.25] * 4, [0.5, 0.5, 0.0, 0.0], [0.0] * 4])
    torch.testing.assert_close(attention_entropy(weights), torch.tensor([0.0, log(4), log(2), 0.0]))


def test_attention_distance_is_the_weighted_mean_distance() -> None:
    previous = torch.zeros(4, 4)
    previous[range(1, 4), range(3)] = 1.0
    torch.testing.assert_close(attention_distance(previous), torch.tensor([0.0, 1.0, 1.0, 1.0]))
    grid = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
    torch.testing.assert_close(attention_distance(torch.full((2, 2), 0.5), grid), torch.tensor([2.5, 2.5]))
    torch.testing.assert_close(
        attention_distance(torch.full((1, 5), 0.2)), torch.tensor([2.0])
    )  # the last of five keys
    with pytest.raises(ValueError, match="queries=3, keys=2"):
        attention_distance(torch.zeros(3, 2))
