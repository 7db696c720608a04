"""Self-attention compared with torch.nn.MultiheadAttention."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.attention import Rotary, SelfAttention, length_mask
from parnassus.attention.core.self_attention import join_heads, split_heads
from parnassus.probability import standard_normal


def make_layer(*, causal: bool = False, dropout: float = 0.0) -> SelfAttention:
    torch.manual_seed(0)
    return SelfAttention(12, 3, causal=causal, dropout=dropout).double()


def random_sequence(batch: int = 2, time: int = 5) -> Tensor:
    return standard_normal(batch, time, 12, seed=1)


def reference_layer(layer: SelfAttention) -> nn.MultiheadAttention:
    """The layer of torch with equal weights."""
    reference = nn.MultiheadAttention(12, 3, batch_first=True, dtype=torch.float64)
    weights = {
        "in_proj_weight": layer.in_proj.weight,
        "in_proj_bias": layer.in_proj.bias,
        "out_proj.weight": layer.out_proj.weight,
        "out_proj.bias": layer.out_proj.bias,
    }
    reference.load_state_dict(weights)
    return reference


@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_matches_torch(*, causal: bool) -> None:
    layer, x = make_layer(causal=causal), random_sequence()
    attn_mask = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
    output, weights = reference_layer(layer)(x, x, x, attn_mask=attn_mask, average_attn_weights=False)
    torch.testing.assert_close(layer(x), output)
    torch.testing.assert_close(layer.weights(x), weights)


def test_padding_mask_matches_torch() -> None:
    layer, x = make_layer(), random_sequence()
    mask = length_mask(torch.tensor([3, 5]), 5)
    output, weights = reference_layer(layer)(x, x, x, key_padding_mask=~mask[:, 0], average_attn_weights=False)
    torch.testing.assert_close(layer(x, mask), output)
    torch.testing.assert_close(layer.weights(x, mask), weights)


def test_weights_are_consistent_with_the_output() -> None:
    layer, x = make_layer(causal=True), random_sequence()
    mask = length_mask(torch.tensor([2, 5]), 5)
    values = layer.project(x)[2]
    torch.testing.assert_close(layer.out_proj(join_heads(layer.weights(x, mask) @ values)), layer(x, mask))


def test_split_heads_divides_the_width_and_join_heads_inverts_it() -> None:
    x = torch.arange(12.0).view(1, 1, 12)
    assert split_heads(x, 3)[0, 1, 0].tolist() == [4.0, 5.0, 6.0, 7.0]
    assert torch.equal(join_heads(split_heads(random_sequence(), 4)), random_sequence())


def test_positions_rotate_queries_and_keys_but_not_values() -> None:
    torch.manual_seed(0)
    rotary = SelfAttention(12, 3, positions=Rotary(4, 9)).double()
    plain = make_layer()
    plain.load_state_dict(rotary.state_dict())
    x = random_sequence()
    assert not torch.allclose(rotary(x), plain(x))
    assert torch.equal(rotary.project(x)[2], plain.project(x)[2])


def test_dropout_is_applied_in_training_only() -> None:
    with_dropout, x = make_layer(dropout=0.5), random_sequence()
    assert (with_dropout(x) == 0).any()
    torch.testing.assert_close(with_dropout.eval()(x), make_layer()(x))


def test_all_parameters_receive_gradients() -> None:
    layer = make_layer(causal=True)
    layer(random_sequence()).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in layer.parameters())


def test_invalid_sizes_raise_value_error() -> None:
    with pytest.raises(ValueError, match="width=10, heads=4"):
        SelfAttention(10, 4)
    with pytest.raises(ValueError, match="dropout=1"):
        SelfAttention(8, 4, dropout=1.0)
