"""cosFormer attention compared with explicit weights."""

import pytest
import torch

from parnassus.attention.efficient.cosformer import (
    causal_cosformer_attention,
    cosformer_attention,
    cosine_features,
    cosine_weight,
)


def explicit_kernel(query: torch.Tensor, key: torch.Tensor, horizon: int) -> torch.Tensor:
    distance = torch.arange(query.shape[-2])[:, None] - torch.arange(key.shape[-2])
    return query.relu() @ key.relu().mT * torch.cos(torch.pi * distance.double() / 2 / horizon)


def test_attention_matches_explicit_weights() -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, 13, 6, dtype=torch.float64) for _ in range(3))
    query[..., 0] = key[..., 0] = 1.0  # avoids zero normalisers
    kernel = explicit_kernel(query, key, 20)
    assert torch.allclose(
        cosformer_attention(query, key, value, horizon=20), kernel / kernel.sum(-1, keepdim=True) @ value, atol=1e-12
    )
    causal_kernel = explicit_kernel(query, key, 13).tril()
    assert torch.allclose(
        causal_cosformer_attention(query, key, value, chunk=4),
        causal_kernel / causal_kernel.sum(-1, keepdim=True) @ value,
        atol=1e-12,
    )


def test_features_with_a_start_position_match_a_slice() -> None:
    x = torch.randn(9, 4)
    assert torch.allclose(cosine_features(x, 12)[5:], cosine_features(x[5:], 12, start=5), atol=1e-6)


def test_cosine_weight_is_zero_at_the_horizon() -> None:
    weight = cosine_weight(torch.tensor([0.0, 4.0, 8.0, -8.0]), 8)
    assert torch.allclose(weight, torch.tensor([1.0, 0.5**0.5, 0.0, 0.0]), atol=1e-6)


def test_query_without_positive_entries_gives_zeros() -> None:
    query = -torch.ones(3, 4)
    assert torch.equal(cosformer_attention(query, torch.randn(3, 4), torch.randn(3, 2)), torch.zeros(3, 2))


def test_position_beyond_the_horizon_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"must not exceed the horizon; got horizon=8, end=9"):
        cosine_features(torch.zeros(9, 4), 8)
