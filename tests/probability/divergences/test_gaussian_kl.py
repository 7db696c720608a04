"""Divergences between Gaussians against torch and each other."""

import pytest
import torch
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from parnassus.probability import diagonal_gaussian_kl, gaussian_kl

DOUBLE = torch.float64


def test_diagonal_gaussian_kl_matches_torch() -> None:
    torch.manual_seed(0)
    mean_1, mean_2 = torch.randn(2, 7, 3, dtype=DOUBLE)
    std_1, std_2 = torch.rand(2, 7, 3, dtype=DOUBLE) + 0.1
    expected = kl_divergence(Normal(mean_1, std_1), Normal(mean_2, std_2)).sum(1)
    torch.testing.assert_close(diagonal_gaussian_kl(mean_1, std_1.square(), mean_2, std_2.square()), expected)


def test_gaussian_kl_matches_torch_and_diagonal_gaussian_kl() -> None:
    torch.manual_seed(0)
    mean_1, mean_2 = torch.randn(2, 6, 4, dtype=DOUBLE)
    root = torch.randn(2, 6, 4, 4, dtype=DOUBLE)
    covariance_1, covariance_2 = root @ root.mT + torch.eye(4, dtype=DOUBLE)
    expected = kl_divergence(MultivariateNormal(mean_1, covariance_1), MultivariateNormal(mean_2, covariance_2))
    torch.testing.assert_close(gaussian_kl(mean_1, covariance_1, mean_2, covariance_2), expected)
    variance_1, variance_2 = torch.rand(2, 6, 4, dtype=DOUBLE) + 0.1
    torch.testing.assert_close(
        gaussian_kl(mean_1, torch.diag_embed(variance_1), mean_2, torch.diag_embed(variance_2)),
        diagonal_gaussian_kl(mean_1, variance_1, mean_2, variance_2),
    )


def test_single_variance_broadcasts() -> None:
    mean, zero = torch.tensor([1.0, -2.0, 0.5]), torch.zeros(3)
    expected = diagonal_gaussian_kl(mean, torch.full((3,), 0.3), zero, torch.ones(3))
    torch.testing.assert_close(diagonal_gaussian_kl(mean, torch.tensor([0.3]), zero, torch.ones(1)), expected)


def test_gaussian_kl_is_zero_only_for_equal_gaussians() -> None:
    mean, covariance = torch.tensor([1.0, 2.0], dtype=DOUBLE), torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=DOUBLE)
    assert abs(float(gaussian_kl(mean, covariance, mean, covariance))) < 1e-14
    assert float(gaussian_kl(mean, covariance, mean, covariance.diagonal().diag())) > 0.01


def test_negative_variance_raises_value_error() -> None:
    with pytest.raises(ValueError, match="a variance must be positive; the smallest is -1"):
        diagonal_gaussian_kl(torch.zeros(2), torch.tensor([1.0, -1.0]), torch.zeros(2), torch.ones(2))
