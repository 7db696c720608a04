"""Pre-norm and post-norm blocks compared with the transformer layers of torch."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.attention import (
    Block,
    DecoderBlock,
    SelfAttention,
    cross_attention,
    feed_forward,
    length_mask,
    post_norm,
    pre_norm,
)
from parnassus.attention.models.block import ResidualConnection
from parnassus.probability import standard_normal

WIDTH, HEADS, HIDDEN = 12, 3, 20


def norm() -> nn.LayerNorm:
    layer = nn.LayerNorm(WIDTH)
    nn.init.normal_(layer.weight)  # different from the identity
    nn.init.normal_(layer.bias)
    return layer


def attention_state(block: SelfAttention, name: str) -> dict[str, Tensor]:
    return {
        f"{name}.in_proj_weight": block.in_proj.weight,
        f"{name}.in_proj_bias": block.in_proj.bias,
        f"{name}.out_proj.weight": block.out_proj.weight,
        f"{name}.out_proj.bias": block.out_proj.bias,
    }


def dense_state(dense: nn.Module, norms: nn.ModuleList) -> dict[str, Tensor]:
    assert isinstance(dense, nn.Sequential)
    state = {
        f"linear{i + 1}.{parameter}": getattr(dense[2 * i], parameter)
        for i in (0, 1)
        for parameter in ("weight", "bias")
    }
    return state | {
        f"norm{i + 1}.{parameter}": getattr(layer_norm, parameter)
        for i, layer_norm in enumerate(norms)
        for parameter in ("weight", "bias")
    }


@pytest.mark.parametrize("residual", [pre_norm, post_norm])
def test_block_matches_torch_encoder_layer(residual: ResidualConnection) -> None:
    torch.manual_seed(0)
    block = Block(SelfAttention(WIDTH, HEADS), feed_forward(WIDTH, HIDDEN), norm=norm, residual=residual).double()
    reference = nn.TransformerEncoderLayer(
        WIDTH, HEADS, HIDDEN, dropout=0.0, batch_first=True, norm_first=residual is pre_norm, dtype=torch.float64
    )
    reference.load_state_dict(attention_state(block.attention, "self_attn") | dense_state(block.dense, block.norms))
    x, mask = standard_normal(2, 5, WIDTH), length_mask(torch.tensor([5, 3]), 5)
    torch.testing.assert_close(block(x), reference(x))
    torch.testing.assert_close(block(x, mask), reference(x, src_key_padding_mask=~mask[:, 0]))


@pytest.mark.parametrize("residual", [pre_norm, post_norm])
def test_decoder_block_matches_torch_decoder_layer(residual: ResidualConnection) -> None:
    torch.manual_seed(0)
    attention, cross = SelfAttention(WIDTH, HEADS, causal=True), cross_attention(WIDTH, HEADS)
    block = DecoderBlock(attention, cross, feed_forward(WIDTH, HIDDEN), norm=norm, residual=residual).double()
    reference = nn.TransformerDecoderLayer(
        WIDTH, HEADS, HIDDEN, dropout=0.0, batch_first=True, norm_first=residual is pre_norm, dtype=torch.float64
    )
    cross_attention_state = {
        "multihead_attn.in_proj_weight": torch.cat([cross.query.weight, cross.key.weight, cross.value.weight]),
        "multihead_attn.in_proj_bias": torch.cat([cross.query.bias, cross.key.bias, cross.value.bias]),
        "multihead_attn.out_proj.weight": cross.out_proj.weight,
        "multihead_attn.out_proj.bias": cross.out_proj.bias,
    }
    reference.load_state_dict(
        attention_state(attention, "self_attn") | cross_attention_state | dense_state(block.dense, block.norms)
    )
    x, memory, mask = (
        standard_normal(2, 4, WIDTH),
        standard_normal(2, 6, WIDTH, seed=1),
        length_mask(torch.tensor([6, 2]), 6),
    )
    future = torch.ones(4, 4, dtype=torch.bool).triu(1)
    expected = reference(x, memory, tgt_mask=future, memory_key_padding_mask=~mask[:, 0])
    torch.testing.assert_close(block(x, memory, memory_mask=mask), expected)


def test_feed_forward_matches_its_definition() -> None:
    torch.manual_seed(0)
    dense, x = feed_forward(3).double(), standard_normal(4, 3)
    first, second = (layer for layer in dense if isinstance(layer, nn.Linear))
    expected = (x @ first.weight.mT + first.bias).clamp(min=0) @ second.weight.mT + second.bias
    torch.testing.assert_close(dense(x), expected)
    assert first.out_features == 12
    assert bool((dense(x) < 0).any())  # no activation after the last layer
    assert isinstance(feed_forward(3, dropout=0.1)[-1], nn.Dropout)


def test_pre_norm_block_with_zero_weights_is_the_identity() -> None:
    block = Block(SelfAttention(WIDTH, HEADS), feed_forward(WIDTH), norm=norm).double()
    for last in (block.attention.out_proj, block.dense[2]):  # type: ignore[index]  # a Sequential
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
    assert torch.equal(block(standard_normal(1, 3, WIDTH)), standard_normal(1, 3, WIDTH))
