"""Transformer encoders compared with torch; padding, dropout and invalid arguments."""

import pytest
import torch
from torch import nn

from parnassus.attention import Block, PositionalEmbedding, SelfAttention, feed_forward, post_norm
from parnassus.attention.models.encoder import Encoder, encoder, masked_mean


def test_encoder_matches_torch() -> None:
    torch.manual_seed(0)
    model = encoder(20, 8, width=16, heads=4, depth=3, hidden=32, residual=post_norm).double()
    reference = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True), 3, enable_nested_tensor=False
    ).double()
    for block, layer in zip(model.blocks, reference.layers, strict=True):
        assert isinstance(block, Block)
        assert isinstance(layer, nn.TransformerEncoderLayer)
        layer.load_state_dict(
            {
                "self_attn.in_proj_weight": block.attention.in_proj.weight,
                "self_attn.in_proj_bias": block.attention.in_proj.bias,
                "self_attn.out_proj.weight": block.attention.out_proj.weight,
                "self_attn.out_proj.bias": block.attention.out_proj.bias,
                **{f"linear1.{name}": value for name, value in block.dense[0].state_dict().items()},  # type: ignore[index]
                **{f"linear2.{name}": value for name, value in block.dense[2].state_dict().items()},  # type: ignore[index]
                **{f"norm1.{name}": value for name, value in block.norms[0].state_dict().items()},
                **{f"norm2.{name}": value for name, value in block.norms[1].state_dict().items()},
            }
        )
    tokens = torch.randint(1, 20, (3, 8))
    tokens[0, 5:] = 0
    is_token = tokens != 0
    expected = reference(model.embedding(tokens), src_key_padding_mask=~is_token)
    torch.testing.assert_close(model(tokens)[is_token], expected[is_token])


def test_padding_is_masked() -> None:
    torch.manual_seed(0)
    model = encoder(20, 12, width=16).double()
    tokens = torch.randint(1, 20, (2, 6))
    padded = torch.cat([tokens, tokens.new_zeros(2, 4)], 1)
    torch.testing.assert_close(model(padded)[:, :6], model(tokens))
    torch.testing.assert_close(model.mean_pool(padded), model(tokens).mean(1))


def test_token_zero_is_an_ordinary_token_without_padding() -> None:
    torch.manual_seed(0)
    model = encoder(20, 6, width=16, padding=None)
    tokens = torch.randint(1, 20, (1, 6))
    changed = tokens.clone()
    changed[0, 5] = 0
    assert model.mask(tokens) is None
    assert (model(changed)[0, 0] - model(tokens)[0, 0]).abs().max() > 1e-4
    torch.testing.assert_close(model.mean_pool(tokens), model(tokens).mean(1))


def test_padding_only_row_has_finite_values_and_gradients() -> None:
    torch.manual_seed(0)
    model = encoder(20, 6, width=16)
    tokens = torch.randint(1, 20, (2, 6))
    tokens[1] = 0
    pooled = model.mean_pool(tokens)
    torch.testing.assert_close(pooled[1], torch.zeros(16))
    pooled.square().sum().backward()
    assert all(bool(parameter.grad.isfinite().all()) for parameter in model.parameters() if parameter.grad is not None)


def test_dropout_is_applied_in_training_only() -> None:
    torch.manual_seed(0)
    model = encoder(20, 6, width=16, dropout=0.5)
    tokens = torch.randint(1, 20, (2, 6))
    assert (model(tokens) - model(tokens)).abs().max() > 0.1
    model.eval()
    torch.testing.assert_close(model(tokens), model(tokens))


def test_mean_of_fully_masked_row_is_zero() -> None:
    x = torch.ones(2, 3, 4)
    mask = torch.tensor([[[True, False, True]], [[False, False, False]]])
    torch.testing.assert_close(masked_mean(x, mask), torch.tensor([[1.0] * 4, [0.0] * 4]))


def test_invalid_arguments_raise_value_error() -> None:
    causal_block = Block(SelfAttention(16, 2, causal=True), feed_forward(16), norm=lambda: nn.LayerNorm(16))
    with pytest.raises(ValueError, match="no block may be causal"):
        Encoder(PositionalEmbedding(20, 6, 16), [causal_block], norm=nn.Identity())
    with pytest.raises(ValueError, match="there are 6 positions"):
        encoder(20, 6, width=16)(torch.ones(1, 7, dtype=torch.long))
