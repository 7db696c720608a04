"""Multi-head cross-attention compared with torch and a loop over heads."""

import pytest
import torch
from torch import nn

from parnassus.attention import AttentionWidths, MultiHeadAttention, attention, cross_attention, length_mask
from parnassus.probability import standard_normal


@pytest.mark.parametrize("use_mask", [False, True])
def test_cross_attention_matches_torch(*, use_mask: bool) -> None:
    torch.manual_seed(0)
    layer = cross_attention(12, 3, memory=8).double()
    reference = nn.MultiheadAttention(12, 3, kdim=8, vdim=8, batch_first=True, dtype=torch.float64)
    reference.load_state_dict(
        {
            "q_proj_weight": layer.query.weight,
            "k_proj_weight": layer.key.weight,
            "v_proj_weight": layer.value.weight,
            "in_proj_bias": torch.cat([layer.query.bias, layer.key.bias, layer.value.bias]),
            "out_proj.weight": layer.out_proj.weight,
            "out_proj.bias": layer.out_proj.bias,
        }
    )
    x, memory = standard_normal(2, 4, 12), standard_normal(2, 6, 8, seed=1)
    mask = length_mask(torch.tensor([5, 2]), 6) if use_mask else None
    key_padding_mask = None if mask is None else ~mask[:, 0]
    output, weights = reference(x, memory, memory, key_padding_mask=key_padding_mask, average_attn_weights=False)
    torch.testing.assert_close(layer(x, memory, memory, mask), output)
    torch.testing.assert_close(layer.weights(x, memory, mask), weights)


def test_widths_of_queries_keys_and_values_can_differ() -> None:
    torch.manual_seed(0)
    layer = MultiHeadAttention(AttentionWidths(5, 7, 3, 11), 2, key_width=4, value_width=6, scale=1.0).double()
    query, key, value = standard_normal(2, 4, 5), standard_normal(2, 9, 7, seed=1), standard_normal(2, 9, 3, seed=2)
    heads = []
    for head in range(2):
        q, k, v = (
            x @ linear.weight.view(2, -1, linear.in_features)[head].mT + linear.bias.view(2, -1)[head]
            for x, linear in ((query, layer.query), (key, layer.key), (value, layer.value))
        )
        heads.append(attention(q, k, v, scale=1.0).output)
    expected = torch.cat(heads, -1) @ layer.out_proj.weight.mT + layer.out_proj.bias
    torch.testing.assert_close(layer(query, key, value), expected)


def test_dropout_is_applied_in_training_only() -> None:
    torch.manual_seed(0)
    layer, x = cross_attention(8, 2, dropout=0.5).double(), standard_normal(1, 30, 8)
    assert (layer(x, x, x) == 0).any()
    assert torch.equal(layer.eval()(x, x, x), layer(x, x, x))


def test_invalid_sizes_raise_value_error() -> None:
    with pytest.raises(ValueError, match="heads=0"):
        MultiHeadAttention(AttentionWidths(4, 4, 4, 4), 0)
    with pytest.raises(ValueError, match="key_width=0"):
        MultiHeadAttention(AttentionWidths(4, 4, 4, 4), 8)
    with pytest.raises(ValueError, match="width=10, heads=3"):
        cross_attention(10, 3)
    with pytest.raises(ValueError, match=r"dropout=-0\.1"):
        cross_attention(4, 2, dropout=-0.1)
