"""Attention compared with a loop over queries and keys and with torch."""

from math import exp, inf, nan, sqrt

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from parnassus.attention import attention, attention_weights, causal_mask, fused_attention, length_mask, masked_softmax
from parnassus.probability import standard_normal


def normal_inputs(queries: int = 5, keys: int = 7) -> tuple[Tensor, Tensor, Tensor]:
    return (
        standard_normal(2, 3, queries, 4),
        standard_normal(2, 3, keys, 4, seed=1),
        standard_normal(2, 3, keys, 6, seed=2),
    )


def reference_attention(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """Attention of one query by the definition of the softmax."""
    exponentials = [exp(float(query @ k) * scale) for k in key]
    weights = [exponential / sum(exponentials) for exponential in exponentials]
    return sum((w * v for w, v in zip(weights, value, strict=True)), start=torch.zeros_like(value[0]))


def test_attention_matches_a_loop_over_queries_and_keys() -> None:
    query, key, value = standard_normal(4, 3), standard_normal(6, 3, seed=1), standard_normal(6, 2, seed=2)
    for scale in (None, 1.0, 0.3):
        rows = [reference_attention(q, key, value, 1 / sqrt(3) if scale is None else scale) for q in query]
        torch.testing.assert_close(attention(query, key, value, scale=scale).output, torch.stack(rows))


def test_bias_is_added_to_the_scaled_scores() -> None:
    query, key, _ = normal_inputs()
    bias = standard_normal(3, 5, 7, seed=3)
    expected = (torch.einsum("bhqd,bhkd->bhqk", query, key) / 2 + bias).softmax(-1)
    torch.testing.assert_close(attention_weights(query, key, bias=bias), expected)


@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("use_mask", [False, True])
@pytest.mark.parametrize("queries", [1, 5, 7])
def test_fused_attention_matches_attention(queries: int, *, use_mask: bool, causal: bool, use_bias: bool) -> None:
    query, key, value = normal_inputs(queries)
    mask = length_mask(torch.tensor([3, 7]), 7)[:, None] if use_mask else None
    bias = standard_normal(3, queries, 7, seed=3) if use_bias else None
    past = causal_mask(queries, 7)
    combined_mask = mask if not causal else past if mask is None else past & mask
    expected = attention(query, key, value, combined_mask, bias=bias).output
    torch.testing.assert_close(fused_attention(query, key, value, mask, bias=bias, causal=causal), expected)


def test_mask_restricts_the_softmax() -> None:
    scores = standard_normal(2, 3, 6)
    weights = masked_softmax(scores, length_mask(torch.tensor([4, 1]), 6))
    torch.testing.assert_close(weights[0, :, :4], scores[0, :, :4].softmax(-1))
    assert (weights[0, :, 4:] == 0).all()
    torch.testing.assert_close(weights[1, :, 0], torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(scores, standard_normal(2, 3, 6))  # not modified in place


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_fully_masked_row_and_its_gradients_are_zero(dtype: torch.dtype) -> None:
    query, key, value = (x.to(dtype).requires_grad_() for x in normal_inputs())
    mask = length_mask(torch.tensor([0, 7]), 7)[:, None]
    for output in (attention(query, key, value, mask).output, fused_attention(query, key, value, mask)):
        assert (output[0] == 0).all()
        gradients = torch.autograd.grad(output.square().sum(), (query, key, value))
        for gradient in gradients:
            assert (gradient[0] == 0).all()
            assert gradient[1].isfinite().all()
            assert gradient[1].abs().sum() > 0


@pytest.mark.parametrize("fill_value", [nan, inf, 1e300])
def test_non_finite_padding_does_not_propagate(fill_value: float) -> None:
    query, key, value = normal_inputs()
    mask = length_mask(torch.tensor([4, 7]), 7)[:, None]
    padded_key, padded_value = key.clone(), value.clone()
    padded_key[0, :, 4:], padded_value[0, :, 4:] = fill_value, fill_value
    query, padded_key, padded_value = leaves = [x.requires_grad_() for x in (query, padded_key, padded_value)]
    expected = attention(query, key, value, mask).output
    unfused = attention(query, padded_key, padded_value, mask).output
    for output in (unfused, fused_attention(query, padded_key, padded_value, mask)):
        torch.testing.assert_close(output, expected)
        for gradient in torch.autograd.grad(output.square().sum(), leaves):
            assert gradient.isfinite().all()


def test_default_scale_matches_torch() -> None:
    query, key, value = normal_inputs()
    torch.testing.assert_close(attention(query, key, value).output, scaled_dot_product_attention(query, key, value))


def test_dropout_preserves_the_mean() -> None:
    torch.manual_seed(0)
    query, key, value = normal_inputs()
    mean = torch.stack([fused_attention(query, key, value, dropout=0.3) for _ in range(4_000)]).mean(0)
    torch.testing.assert_close(mean, fused_attention(query, key, value), atol=0.06, rtol=0.0)
