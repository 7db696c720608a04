"""Learned kernels compared with fixed kernels."""

import pytest
import torch
from torch import nn

from parnassus.attention import BilinearScore, LearnedKernel, MahalanobisScore, NadarayaWatson

torch.manual_seed(0)
X, Y = torch.randn(20, 2, dtype=torch.float64), torch.randn(20, 1, dtype=torch.float64)


def test_initial_model_matches_kernel_regression() -> None:
    model = LearnedKernel(MahalanobisScore(2, sigma=0.5)).double()
    fixed_kernel = NadarayaWatson.fit(X, Y, bandwidth=0.5)
    torch.testing.assert_close(model(X, X, Y), fixed_kernel.predict(X))
    torch.testing.assert_close(model.weights(X[:3], X), fixed_kernel.weights(X[:3]))
    torch.testing.assert_close(model.loss(X, Y).item(), fixed_kernel.leave_one_out_error())


def test_bilinear_score_of_quadratic_features_can_represent_the_gaussian_kernel() -> None:
    """With features (x, ½‖x‖², 1), qᵀMk can equal qᵀk − ½‖k‖², the Gaussian score up to a constant per query."""

    def features(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x.square().sum(-1, keepdim=True) / 2, torch.ones(len(x), 1).to(x)], 1)

    score = BilinearScore(4, 4).double()
    score.m.data = torch.diag(torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64))
    score.m.data[3, 2] = -1.0
    model = LearnedKernel(score)
    torch.testing.assert_close(model.weights(features(X), features(X)), NadarayaWatson.fit(X, Y).weights(X))


def test_all_parameters_receive_gradients() -> None:
    model = LearnedKernel(MahalanobisScore(2), nn.Linear(1, 1)).double()
    model.loss(X, Y).backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in model.parameters())


def test_leave_one_out_of_one_example_raises_value_error() -> None:
    with pytest.raises(ValueError, match="at least two examples; got 1"):
        LearnedKernel(MahalanobisScore(2)).loss(X[:1].float(), Y[:1].float())
