"""Multi-head attention between two sequences against torch's layer and explicit indices."""

import pytest
import torch
from torch import nn

from parnassus.attention import AttentionWidths, MultiHeadAttention, attention, cross_attention, length_mask
from parnassus.probability import standard_normal


@pytest.mark.parametrize("masked", [False, True])
def test_cross_attention_is_the_layer_of_torch(*, masked: bool) -> None:
    torch.manual_seed(0)
    ours = cross_attention(12, 3, memory=8).double()
    theirs = nn.MultiheadAttention(12, 3, kdim=8, vdim=8, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict(
        {
            "q_proj_weight": ours.query.weight,
            "k_proj_weight": ours.key.weight,
            "v_proj_weight": ours.value.weight,
            "in_proj_bias": torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]),
            "out_proj.weight": ours.out_proj.weight,
            "out_proj.bias": ours.out_proj.bias,
        }
    )
    x, memory = standard_normal(2, 4, 12), standard_normal(2, 6, 8, seed=1)
    mask = length_mask(torch.tensor([5, 2]), 6) if masked else None
    hidden = None if mask is None else ~mask[:, 0]
    output, weights = theirs(x, memory, memory, key_padding_mask=hidden, average_attn_weights=False)
    torch.testing.assert_close(ours(x, memory, memory, mask), output)
    torch.testing.assert_close(ours.weights(x, memory, mask), weights)


def test_widths_of_queries_keys_and_values_may_all_differ() -> None:
    torch.manual_seed(0)
    ours = MultiHeadAttention(AttentionWidths(5, 7, 3, 11), 2, key_width=4, value_width=6, scale=1.0).double()
    query, key, value = standard_normal(2, 4, 5), standard_normal(2, 9, 7, seed=1), standard_normal(2, 9, 3, seed=2)
    heads = []
    for head in range(2):
        q, k, v = (
            x @ linear.weight.view(2, -1, linear.in_features)[head].mT + linear.bias.view(2, -1)[head]
            for x, linear in ((query, ours.query), (key, ours.key), (value, ours.value))
        )
        heads.append(attention(q, k, v, scale=1.0).output)
    expected = torch.cat(heads, -1) @ ours.out_proj.weight.mT + ours.out_proj.bias
    torch.testing.assert_close(ours(query, key, value), expected)


def test_dropout_acts_in_training_only() -> None:
    torch.manual_seed(0)
    ours, x = cross_attention(8, 2, dropout=0.5).double(), standard_normal(1, 30, 8)
    assert (ours(x, x, x) == 0).any()
    assert torch.equal(ours.eval()(x, x, x), ours(x, x, x))


def test_invalid_sizes_raise() -> None:
    with pytest.raises(ValueError, match="heads=0"):
        MultiHeadAttention(AttentionWidths(4, 4, 4, 4), 0)
    with pytest.raises(ValueError, match="key_width=0"):
        MultiHeadAttention(AttentionWidths(4, 4, 4, 4), 8)
    with pytest.raises(ValueError, match="width=10, heads=3"):
        cross_attention(10, 3)
    with pytest.raises(ValueError, match=r"dropout=-0\.1"):
        cross_attention(4, 2, dropout=-0.1)
