"""Conditioning mechanisms: initially the identity, closed forms, dependence on the condition."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.diffusion.networks.conditioning import (
    Concatenation,
    ConditionedMLP,
    CrossAttention,
    FiLM,
    Mechanism,
    Multiplication,
    SpatialSelfAttention,
    multi_head_attention,
    zero_initialise,
)
from parnassus.diffusion.networks.mlp_denoisers import TimeMLP

MECHANISMS: list[Mechanism] = [Concatenation, Multiplication, FiLM, CrossAttention]
SPACES = [(), (7,), (4, 3)]


def features_and_tokens(space: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(2, 6, *space), torch.randn(2, 3, 5)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("space", SPACES)
def test_mechanisms_are_initially_the_identity(mechanism: Mechanism, space: tuple[int, ...]) -> None:
    h, tokens = features_and_tokens(space)
    torch.testing.assert_close(mechanism(6, 5)(h, tokens), h)


def test_film_and_multiplication_match_closed_forms() -> None:
    h, tokens = features_and_tokens((4, 3))
    film, factor = FiLM(6, 5), Multiplication(6, 5)
    nn.init.normal_(film.affine.weight)
    nn.init.normal_(factor.factor.weight)
    condition = tokens.mean(1)
    gamma, beta = condition @ film.affine.weight[:6].mT, condition @ film.affine.weight[6:].mT
    modulated = torch.einsum("bc,bchw->bchw", 1 + gamma, h) + beta[:, :, None, None]
    torch.testing.assert_close(film(h, tokens), modulated)
    scaled = torch.einsum("bc,bchw->bchw", 1 + condition @ factor.factor.weight.mT, h)
    torch.testing.assert_close(factor(h, tokens), scaled)


def test_concatenation_is_a_1_by_1_convolution() -> None:
    h, tokens = features_and_tokens((4, 3))
    concatenation = Concatenation(6, 5)
    nn.init.normal_(concatenation.mix.weight)
    both = torch.cat([h, tokens.mean(1)[:, :, None, None].expand(-1, -1, 4, 3)], dim=1)
    expected = nn.functional.conv2d(both, concatenation.mix.weight[:, :, None, None], concatenation.mix.bias)
    torch.testing.assert_close(concatenation(h, tokens), expected)


@pytest.mark.parametrize("heads", [1, 3])
def test_cross_attention_matches_torch(heads: int) -> None:
    """Cross-attention equals nn.MultiheadAttention with the same weights."""
    h, tokens = features_and_tokens((4, 3))
    attention = CrossAttention(6, 5, heads=heads)
    reference = nn.MultiheadAttention(6, heads, kdim=5, vdim=5, batch_first=True)
    nn.init.normal_(attention.out.weight)
    with torch.no_grad():
        reference.q_proj_weight.copy_(attention.query.weight)
        reference.k_proj_weight.copy_(attention.key.weight)
        reference.v_proj_weight.copy_(attention.value.weight)
        reference.out_proj.load_state_dict(attention.out.state_dict())
    positions = attention.norm(h.flatten(2).mT)
    output, weights = reference(positions, tokens, tokens)
    torch.testing.assert_close(attention(h, tokens), h + output.mT.reshape(h.shape))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 12))


def test_attention_is_invariant_to_token_order_and_constant_for_a_single_token() -> None:
    h, tokens = features_and_tokens((4, 3))
    attention = CrossAttention(6, 5)
    nn.init.normal_(attention.out.weight)
    torch.testing.assert_close(attention(h, tokens), attention(h, tokens.flip(1)))
    update = attention(h, tokens[:, :1]) - h
    torch.testing.assert_close(update, update[:, :, :1, :1].expand_as(update))


def test_self_attention_is_permutation_equivariant() -> None:
    h, _ = features_and_tokens((12,))
    attention = SpatialSelfAttention(6, heads=2)
    torch.testing.assert_close(attention(h), h)
    nn.init.normal_(attention.out.weight)
    torch.testing.assert_close(attention(h.flip(2)), attention(h).flip(2))
    assert not torch.allclose(attention(h), h, atol=1e-2)


def test_attention_weights_are_the_softmax_of_scaled_products() -> None:
    query, key, value = (torch.randn(2, count, 6, dtype=torch.float64) for count in (4, 3, 3))
    weights = (query @ key.mT / 6**0.5).softmax(-1)
    torch.testing.assert_close(multi_head_attention(query, key, value, 1), weights @ value)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_network_depends_on_the_class_only_after_training(mechanism: Mechanism) -> None:
    torch.manual_seed(0)
    inner = TimeMLP(2, 16)
    network = ConditionedMLP(inner, 3, mechanism)
    x, t, label = torch.randn(6, 2), torch.arange(6), torch.arange(6) % 3
    torch.testing.assert_close(network(x, t, label), inner(x, t))
    torch.testing.assert_close(network(x, t), inner(x, t))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
    for _ in range(2):  # layers behind a zero layer change in the second step
        optimizer.zero_grad()
        (network(x, t, label) - label[:, None]).square().mean().backward()
        optimizer.step()
    assert not torch.allclose(network(x, t, label), network(x, t, (label + 1) % 3), atol=1e-4)


def test_zero_initialised_layers_output_zeros_and_receive_gradients() -> None:
    for layer, x in (
        (zero_initialise(nn.Linear(3, 2)), torch.ones(1, 3)),
        (zero_initialise(nn.Conv2d(3, 2, 1)), torch.ones(1, 3, 1, 1)),
    ):
        out = layer(x)
        assert not bool(out.any())
        (out - 1).square().sum().backward()
        assert layer.weight.grad is not None
        assert bool((layer.weight.grad != 0).all())


def test_invalid_sizes_raise_value_error() -> None:
    with pytest.raises(ValueError, match="divisible by heads; got channels=6, heads=4"):
        CrossAttention(6, 5, heads=4)
    with pytest.raises(ValueError, match="divisible by heads; got channels=6, heads=4"):
        SpatialSelfAttention(6, heads=4)
    with pytest.raises(ValueError, match="must be positive; got classes=0, tokens=4"):
        ConditionedMLP(TimeMLP(2, 16), 0, FiLM)
