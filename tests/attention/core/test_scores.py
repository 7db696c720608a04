"""Attention scores compared with loops and closed forms."""

import pytest
import torch
from torch import nn

from parnassus.attention import (
    AdditiveScore,
    AttentionScore,
    BilinearScore,
    MahalanobisScore,
    cosine_score,
    dot_score,
    gaussian_score,
    scaled_score,
)

torch.manual_seed(0)
QUERY, KEY = torch.randn(2, 3, 5, dtype=torch.float64), torch.randn(2, 4, 5, dtype=torch.float64)


@pytest.mark.parametrize(
    ("score", "pairwise_score"),
    [
        (dot_score, lambda q, k: q @ k),
        (scaled_score, lambda q, k: q @ k / 5**0.5),
        (cosine_score, lambda q, k: q @ k / (q.norm() * k.norm())),
        (gaussian_score, lambda q, k: -(q - k).square().sum() / 2),
    ],
)
def test_scores_match_pairwise_scores(score: AttentionScore, pairwise_score: AttentionScore) -> None:
    scores = score(QUERY, KEY)
    for b in range(2):
        for i in range(3):
            for j in range(4):
                torch.testing.assert_close(scores[b, i, j], pairwise_score(QUERY[b, i], KEY[b, j]))


def test_gaussian_score_is_nonpositive_and_scales_with_inverse_squared_sigma() -> None:
    x = 1e3 * torch.randn(50, 7, generator=torch.Generator().manual_seed(0))
    naive_scores = x @ x.mT - (x.square().sum(-1)[:, None] + x.square().sum(-1)) / 2
    assert float(naive_scores.max()) > 0  # rounding errors give positive scores here
    assert float(gaussian_score(x, x).max()) == 0.0
    torch.testing.assert_close(gaussian_score(QUERY, KEY, sigma=3.0), gaussian_score(QUERY, KEY) / 9)


def test_cosine_score_of_the_zero_vector_is_zero() -> None:
    assert cosine_score(torch.zeros(1, 5), torch.randn(4, 5)).abs().max() == 0.0


def test_bilinear_score_with_scaled_identity_matches_scaled_score() -> None:
    score = BilinearScore(5, 5).double()
    nn.init.eye_(score.m)
    score.m.data /= 5**0.5
    torch.testing.assert_close(score(QUERY, KEY), scaled_score(QUERY, KEY))


def test_initial_bilinear_score_has_unit_variance() -> None:
    torch.manual_seed(1)
    scores = torch.stack([BilinearScore(40, 7)(torch.randn(50, 40), torch.randn(50, 7)) for _ in range(40)])
    torch.testing.assert_close(scores.var(), torch.tensor(1.0), rtol=0.1, atol=0.0)


def test_mahalanobis_score_uses_its_matrix() -> None:
    score = MahalanobisScore(5, sigma=2.0).double()
    torch.testing.assert_close(score(QUERY, KEY), gaussian_score(QUERY, KEY, sigma=2.0))
    score.w.data[3] = 0.0
    shifted_key = KEY.clone()
    shifted_key[..., 3] += 100.0
    torch.testing.assert_close(score(QUERY, shifted_key), score(QUERY, KEY))


def test_additive_score_matches_a_network_on_concatenated_inputs() -> None:
    score = AdditiveScore(5, 2, 6).double()
    key = KEY[..., :2]
    concatenated = torch.cat([QUERY[:, :, None].expand(2, 3, 4, 5), key[:, None].expand(2, 3, 4, 2)], -1)
    first_weight = torch.cat([score.query.weight, score.key.weight], 1)
    torch.testing.assert_close(score(QUERY, key), torch.tanh(concatenated @ first_weight.mT) @ score.value.weight[0])


def test_all_parameters_of_learned_scores_receive_gradients() -> None:
    for score in (MahalanobisScore(5), BilinearScore(5, 5), AdditiveScore(5, 5, 3)):
        score(torch.randn(3, 5), torch.randn(4, 5)).square().sum().backward()
        assert all(p.grad is not None and p.grad.abs().max() > 0 for p in score.parameters())


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="sigma must be positive; got sigma=0"):
        gaussian_score(QUERY, KEY, sigma=0.0)
    with pytest.raises(ValueError, match="sigma must be positive; got sigma=-1"):
        MahalanobisScore(3, sigma=-1.0)
    with pytest.raises(ValueError, match="widths must be at least 1; got query_width=0"):
        BilinearScore(0, 3)
    with pytest.raises(ValueError, match="widths must be at least 1; got query_width=3, key_width=3, hidden=0"):
        AdditiveScore(3, 3, 0)
