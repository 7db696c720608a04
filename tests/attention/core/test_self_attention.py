"""Self-attention against torch's MultiheadAttention, with masks."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.attention import Rotary, SelfAttention, length_mask
from parnassus.attention.core.self_attention import join_heads, split_heads


def build_layer(*, causal: bool = False, dropout: float = 0.0) -> SelfAttention:
    torch.manual_seed(0)
    return SelfAttention(12, 3, causal=causal, dropout=dropout).double()


def sequence(batch: int = 2, time: int = 5) -> Tensor:
    return torch.randn(batch, time, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def library_layer(layer: SelfAttention) -> nn.MultiheadAttention:
    """The layer of torch with the same weights."""
    library = nn.MultiheadAttention(12, 3, batch_first=True, dtype=torch.float64)
    weights = {
        "in_proj_weight": layer.in_proj.weight,
        "in_proj_bias": layer.in_proj.bias,
        "out_proj.weight": layer.out_proj.weight,
        "out_proj.bias": layer.out_proj.bias,
    }
    library.load_state_dict(weights)
    return library


@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_equals_the_layer_of_torch(*, causal: bool) -> None:
    layer, x = build_layer(causal=causal), sequence()
    attn_mask = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
    output, weights = library_layer(layer)(x, x, x, attn_mask=attn_mask, average_attn_weights=False)
    torch.testing.assert_close(layer(x), output)
    torch.testing.assert_close(layer.weights(x), weights)


def test_padding_is_masked_as_in_torch() -> None:
    layer, x = build_layer(), sequence()
    mask = length_mask(torch.tensor([3, 5]), 5)
    output, weights = library_layer(layer)(x, x, x, key_padding_mask=~mask[:, 0], average_attn_weights=False)
    torch.testing.assert_close(layer(x, mask), output)
    torch.testing.assert_close(layer.weights(x, mask), weights)


def test_the_weights_are_those_of_the_output() -> None:
    layer, x = build_layer(causal=True), sequence()
    mask = length_mask(torch.tensor([2, 5]), 5)
    values = layer.project(x)[2]
    torch.testing.assert_close(layer.out_proj(join_heads(layer.weights(x, mask) @ values)), layer(x, mask))


def test_heads_are_parts_of_the_width() -> None:
    x = torch.arange(12.0).view(1, 1, 12)
    assert split_heads(x, 3)[0, 1, 0].tolist() == [4.0, 5.0, 6.0, 7.0]
    assert torch.equal(join_heads(split_heads(sequence(), 4)), sequence())


def test_positions_rotate_queries_and_keys_but_not_values() -> None:
    torch.manual_seed(0)
    rotary = SelfAttention(12, 3, positions=Rotary(4, 9)).double()
    plain = build_layer()
    plain.load_state_dict(rotary.state_dict())
    x = sequence()
    assert not torch.allclose(rotary(x), plain(x))
    assert torch.equal(rotary.project(x)[2], plain.project(x)[2])


def test_dropout_acts_in_training_only() -> None:
    with_dropout, x = build_layer(dropout=0.5), sequence()
    assert (with_dropout(x) == 0).any()
    torch.testing.assert_close(with_dropout.eval()(x), build_layer()(x))


def test_every_parameter_gets_a_gradient() -> None:
    layer = build_layer(causal=True)
    layer(sequence()).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in layer.parameters())


def test_invalid_sizes_raise() -> None:
    with pytest.raises(ValueError, match="width=10, heads=4"):
        SelfAttention(10, 4)
    with pytest.raises(ValueError, match="dropout=1"):
        SelfAttention(8, 4, dropout=1.0)
