"""Linformer: attention at full and low rank, and its layer."""

import pytest
import torch

from parnassus.attention import attention
from parnassus.attention.efficient.linear_self_attention import RunningSumsCache
from parnassus.attention.efficient.linformer import LinformerSelfAttention, linformer_attention


def test_permutation_projection_is_exact() -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, 7, 4, dtype=torch.float64) for _ in range(3))
    permutation = torch.eye(7, dtype=torch.float64)[torch.randperm(7)]
    exact = attention(query, key, value).output
    assert torch.allclose(linformer_attention(query, key, value, permutation, permutation), exact, atol=1e-12)


def test_rank_two_attention_matches_its_formula() -> None:
    torch.manual_seed(1)
    query, key, value, projection = (torch.randn(n, 3, dtype=torch.float64) for n in (5, 3, 3, 2))
    scores = query @ (projection @ key).T / 3**0.5
    weights = scores.exp() / scores.exp().sum(1, keepdim=True)
    assert torch.allclose(
        linformer_attention(query, key, value, projection, 2 * projection), weights @ (2 * projection @ value)
    )


def test_output_is_the_weighted_mean_of_the_values() -> None:
    torch.manual_seed(0)
    layer = LinformerSelfAttention(8, 2, length=10, rank=3).double()
    x = torch.randn(2, 7, 8, dtype=torch.float64)
    mask = torch.ones(2, 1, 7, dtype=torch.bool)
    mask[0, :, 4:] = False
    for key_mask in (None, mask):
        _, _, value = layer.project(x)
        expected = layer.out_proj((layer.weights(x, key_mask) @ value).transpose(1, 2).flatten(-2))
        assert torch.allclose(layer(x, key_mask), expected, atol=1e-12)
    changed = x.clone()
    changed[0, 4:] = torch.randn(3, 8, dtype=torch.float64)
    assert torch.allclose(layer(changed, mask)[0, :4], layer(x, mask)[0, :4])


def test_all_parameters_receive_gradients() -> None:
    layer = LinformerSelfAttention(8, 2, length=6, rank=3)
    layer(torch.randn(2, 6, 8)).square().sum().backward()
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        assert float(parameter.grad.abs().max()) > 0, name


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="rank must lie between 1 and length; got rank=9, length=8"):
        LinformerSelfAttention(8, 2, length=8, rank=9)
    layer = LinformerSelfAttention(8, 2, length=8, rank=2)
    with pytest.raises(ValueError, match="at most length=8 tokens; got 9"):
        layer(torch.zeros(1, 9, 8))
    with pytest.raises(ValueError, match="must have the shape"):
        layer(torch.zeros(1, 3, 8), torch.ones(1, 3, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match="cannot decode from a cache"):
        layer(torch.zeros(1, 3, 8), None, RunningSumsCache())
