"""Nyströmformer: landmarks, pseudo-inverse and exact special cases."""

import pytest
import torch

from parnassus.attention import attention
from parnassus.attention.efficient.nystrom import iterative_pseudo_inverse, landmarks, nystrom_attention


def test_landmarks_are_means_of_segments() -> None:
    x = torch.arange(24.0).view(2, 12, 1)
    assert torch.allclose(landmarks(x, 3), x.view(2, 3, 4, 1).mean(2))
    assert torch.equal(landmarks(x, 12), x)
    assert landmarks(torch.randn(2, 3, 10, 4), 4).shape == (2, 3, 4, 4)  # segments of unequal length


def test_pseudo_inverse_matches_torch_pinv() -> None:
    torch.manual_seed(0)
    weights = torch.randn(3, 8, 8, dtype=torch.float64).softmax(-1)
    assert torch.allclose(iterative_pseudo_inverse(weights, steps=40), torch.linalg.pinv(weights), rtol=1e-6)
    matrix = torch.eye(5, dtype=torch.float64) + 0.1 * torch.rand(5, 5, dtype=torch.float64)
    assert torch.allclose(iterative_pseudo_inverse(matrix), torch.linalg.inv(matrix), atol=1e-8)  # six steps suffice


def test_attention_is_exact_with_a_landmark_per_position() -> None:
    torch.manual_seed(0)
    query, key, value = (2 * torch.randn(2, 9, 4, dtype=torch.float64) for _ in range(3))
    exact = attention(query, key, value).output
    assert torch.allclose(nystrom_attention(query, key, value, num_landmarks=9, steps=60), exact, atol=1e-6)


def test_attention_is_exact_for_constant_segments() -> None:
    torch.manual_seed(0)
    query, key = (2 * torch.randn(4, 5, dtype=torch.float64).repeat_interleave(8, 0) for _ in range(2))
    value = torch.randn(32, 3, dtype=torch.float64)
    exact = attention(query, key, value).output
    assert torch.allclose(nystrom_attention(query, key, value, num_landmarks=4, steps=40), exact, atol=1e-6)


def test_invalid_sizes_raise_value_error() -> None:
    with pytest.raises(ValueError, match="between 1 and the length 4; got count=5"):
        landmarks(torch.zeros(4, 2), 5)
    with pytest.raises(ValueError, match="steps must not be negative; got steps=-1"):
        iterative_pseudo_inverse(torch.eye(2), steps=-1)
