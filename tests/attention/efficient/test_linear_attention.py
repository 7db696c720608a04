"""Linear attention compared with explicit weights and the recurrence; its layers."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.attention import Block, LanguageModel, PositionalEmbedding, causal_mask, feed_forward
from parnassus.attention.efficient.linear_attention import (
    CHUNKS_PER_GROUP,
    append_column,
    append_ones,
    causal_feature_attention,
    causal_linear_attention,
    elu_features,
    linear_attention,
    linear_attention_weights,
)
from parnassus.attention.efficient.linear_self_attention import LinearSelfAttention, RunningSumsCache


def normal_inputs(*shape: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    query, key, value = (torch.randn(*shape, generator=generator, dtype=torch.float64) for _ in range(3))
    return query, key, value


def make_language_model(window: int = 40) -> LanguageModel:
    torch.manual_seed(0)
    blocks = [
        Block(LinearSelfAttention(16, 2, causal=True, chunk=8), feed_forward(16), norm=lambda: nn.LayerNorm(16))
        for _ in range(2)
    ]
    return LanguageModel(PositionalEmbedding(11, window, 16), blocks, window=window).double()


def test_elu_features_match_known_values_and_are_positive() -> None:
    x = torch.tensor([-30.0, -1.0, 0.0, 2.0], dtype=torch.float64)
    assert torch.allclose(elu_features(x), torch.tensor([0.0, torch.e**-1, 1.0, 3.0], dtype=torch.float64), atol=1e-12)
    assert bool((elu_features(torch.linspace(-30, 30, 101)) > 0).all())


@pytest.mark.parametrize("features", [elu_features, torch.exp, torch.square])
def test_attention_matches_explicit_weights(features: object) -> None:
    query, key, value = normal_inputs(2, 3, 17, 5)
    assert callable(features)
    weights = linear_attention_weights(query, key, features)
    assert torch.allclose(weights.sum(-1), torch.ones(2, 3, 17, dtype=torch.float64))
    assert torch.allclose(linear_attention(query, key, value, features), weights @ value, atol=1e-12)
    causal = linear_attention_weights(query, key, features, causal_mask(17))
    assert torch.allclose(causal_linear_attention(query, key, value, features, chunk=4), causal @ value, atol=1e-12)


@pytest.mark.parametrize("chunk", [1, 3, 16, 17, 100])
def test_chunked_attention_matches_the_recurrence(chunk: int) -> None:
    query, key, value = normal_inputs(17, 5)
    sums, normaliser, expected = torch.zeros(5, 5).double(), torch.zeros(5).double(), []
    for q, k, v in zip(elu_features(query), elu_features(key), value, strict=True):
        sums, normaliser = sums + torch.outer(k, v), normaliser + k
        expected.append(q @ sums / (q @ normaliser))
    assert torch.allclose(causal_linear_attention(query, key, value, chunk=chunk), torch.stack(expected), atol=1e-12)


@pytest.mark.parametrize("split", [0, 1, 5, 16])
def test_continuing_from_running_sums_matches_full_pass(split: int) -> None:
    query, key, value = normal_inputs(2, 17, 5)
    query_features, key_features = elu_features(query), elu_features(key)
    expected, expected_sums = causal_feature_attention(query_features, key_features, value, chunk=4)
    first, past = causal_feature_attention(
        query_features[:, :split], key_features[:, :split], value[:, :split], chunk=4
    )
    second, final = causal_feature_attention(
        query_features[:, split:], key_features[:, split:], value[:, split:], past, chunk=4
    )
    assert torch.allclose(torch.cat([first, second], 1), expected, atol=1e-12)
    assert torch.allclose(final.values, expected_sums.values)
    assert torch.allclose(final.normaliser, key_features.sum(1))
    assert final.values.shape == (2, 5, 5)  # independent of the number of tokens


def test_gradients_pass_gradcheck() -> None:
    query, key, value = (x.requires_grad_() for x in normal_inputs(2, 7, 3))
    assert torch.autograd.gradcheck(linear_attention, (query, key, value))
    assert torch.autograd.gradcheck(lambda q, k, v: causal_linear_attention(q, k, v, chunk=3), (query, key, value))


def test_derivative_of_elu_features_matches_closed_form() -> None:
    x = torch.tensor([-200.0, -1.5, -1e-3, 1e-3, 2.0, 800.0], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(elu_features(x).sum(), x)
    assert torch.equal(gradient, torch.where(x > 0, 1.0, x.exp()).detach())  # finite where eˣ overflows
    inputs = normal_inputs(3, 4)[0].requires_grad_()
    assert torch.autograd.gradcheck(elu_features, inputs)
    assert torch.autograd.gradgradcheck(elu_features, inputs)
    by_row = torch.func.vmap(torch.func.grad(lambda row: elu_features(row).square().sum()))(inputs.detach())
    assert torch.allclose(by_row, torch.autograd.grad(elu_features(inputs).square().sum(), inputs)[0])


def test_masked_keys_have_no_effect() -> None:
    query, key, value = normal_inputs(2, 6, 4)
    visible = torch.tensor([[True, True, False, True, False, False], [False] * 6])
    bidirectional = linear_attention(query, key, value, visible=visible)
    visible_keys = visible[0]
    assert torch.allclose(
        bidirectional[0], linear_attention(query[0], key[0, visible_keys], value[0, visible_keys]), atol=1e-12
    )
    assert torch.equal(bidirectional[1], torch.zeros(6, 4, dtype=torch.float64))  # no visible key: zeros, not NaN
    causal = causal_linear_attention(query, key, value, visible=visible, chunk=2)
    assert torch.allclose(causal[0, 3], linear_attention(query[0, 3:4], key[0, [0, 1, 3]], value[0, [0, 1, 3]])[0])
    assert torch.equal(causal[1], bidirectional[1])


def test_long_sums_in_half_precision_are_accurate() -> None:
    query, key, value = (x.bfloat16() for x in normal_inputs(4_000, 8))
    expected = causal_linear_attention(query.double(), key.double(), value.double() + 1)
    actual = causal_linear_attention(query, key, value + 1, chunk=16)
    assert float((actual - expected)[2_000:].abs().max()) < 0.05  # sums in bfloat16 would have an error of 1


def test_nested_groups_of_chunks_match_explicit_weights() -> None:
    group = CHUNKS_PER_GROUP["cpu"]
    query, key, value = normal_inputs(group**2 + group + 3, 4)
    causal = linear_attention_weights(query, key, elu_features, causal_mask(len(query)))
    assert torch.allclose(causal_linear_attention(query, key, value, chunk=1), causal @ value, atol=1e-12)


def test_running_sums_of_half_precision_inputs_are_in_single_precision() -> None:
    query, key, value = (x.bfloat16() for x in normal_inputs(2, 40, 8))
    _, past = causal_feature_attention(elu_features(query), elu_features(key), value)
    assert past.values.dtype == past.normaliser.dtype == torch.float32
    output, sums = causal_feature_attention(elu_features(query), elu_features(key), value, past)
    assert (output.dtype, sums.values.dtype) == (torch.bfloat16, torch.float32)
    assert torch.allclose(sums.normaliser, 2 * past.normaliser)


def test_append_column_pads_rows_to_16_bytes() -> None:
    appended = append_column(torch.ones(2, 3, 5), torch.full((3, 1), 2.0))
    assert torch.equal(appended[1, 2], torch.tensor([1.0, 1, 1, 1, 1, 2, 0, 0]))
    assert append_column(torch.ones(3, 7).bfloat16(), torch.zeros(1).bfloat16()).shape == (3, 8)
    x = torch.randn(2, 3, 5)
    assert torch.equal(append_ones(x), torch.cat([x, torch.ones(2, 3, 3)], -1))


def test_chunk_size_of_zero_raises_value_error() -> None:
    with pytest.raises(ValueError, match="chunk must be at least 1; got chunk=0"):
        causal_linear_attention(*normal_inputs(4, 3), chunk=0)


@pytest.mark.parametrize("causal", [False, True])
def test_output_is_the_weighted_mean_of_the_values(causal: bool) -> None:
    torch.manual_seed(0)
    layer = LinearSelfAttention(12, 3, causal=causal, chunk=4).double()
    x = torch.randn(2, 9, 12, dtype=torch.float64)
    mask = torch.ones(2, 1, 9, dtype=torch.bool)
    mask[1, :, 6:] = False
    _, _, value = layer.project(x)
    expected = layer.out_proj((layer.weights(x, mask) @ value).transpose(1, 2).flatten(-2))
    assert torch.allclose(layer(x, mask), expected, atol=1e-12)
    assert torch.allclose(layer(x, mask.expand(2, 9, 9)), expected, atol=1e-12)


def test_invalid_masks_and_caches_raise() -> None:
    layer = LinearSelfAttention(4, 2)
    x = torch.zeros(1, 3, 4)
    with pytest.raises(ValueError, match="the same for all queries"):
        layer(x, causal_mask(3)[None])
    with pytest.raises(TypeError, match="must be a RunningSumsCache"):
        layer(x, None, RunningSumsCache())  # the layer is not causal


def test_language_model_decodes_with_a_state_of_constant_size() -> None:
    model = make_language_model()
    tokens = torch.randint(11, (3, 20))
    full = model(tokens)
    logits, state = model.read(tokens[:, :5])
    assert torch.allclose(logits, full[:, 4], atol=1e-12)
    for position in range(5, 20):
        logits, state = model.read(tokens[:, position : position + 1], state)
        assert torch.allclose(logits, full[:, position], atol=1e-12)
    first = state.layers[0]
    assert isinstance(first, RunningSumsCache)
    assert first.sums is not None
    assert first.count == 20
    assert first.sums.values.shape == (3, 2, 8, 8)


def test_selected_cache_rows_continue_independently() -> None:
    model = make_language_model()
    tokens = torch.randint(11, (3, 6))
    _, state = model.read(tokens)
    logits, _ = model.read(torch.tensor([[1], [1]]), state.rows(torch.tensor([2, 0])))
    expected = model(torch.cat([tokens[[2, 0]], torch.tensor([[1], [1]])], 1))
    assert torch.allclose(logits, expected[:, -1], atol=1e-12)
    assert RunningSumsCache().rows(torch.tensor([0])).count == 0
