"""The output distribution of infinite ensembles and its mutual information."""

from math import inf, log

import pytest
import torch

from parnassus.kernels import (
    Identity,
    InfiniteEnsemble,
    ReLU,
    fully_connected,
    input_mutual_information,
    label_mutual_information,
)
from parnassus.probability import gaussian_kl

DOUBLE = torch.float64
X = torch.tensor([[1.0, 0.0, 0.2], [0.6, 0.8, 0.0], [-0.3, 0.5, 1.0]], dtype=DOUBLE)
Y = torch.tensor([1.0, -1.0, 0.5], dtype=DOUBLE)
NEW = torch.tensor([[0.2, 0.9, -0.4], [1.0, 1.0, 1.0]], dtype=DOUBLE)


def test_linear_model_matches_closed_form() -> None:
    """With f = wᵀx and w ~ N(0, I): K = Θ = xᵀx', and w_τ = e^{−τXᵀX} w_0 + … is Gaussian in three dimensions."""
    ensemble = InfiniteEnsemble.fit(fully_connected(0, Identity()), X, Y)
    gram = X.mT @ X
    decay = torch.linalg.matrix_exp(-0.7 * gram)
    mean = (torch.eye(3, dtype=DOUBLE) - decay) @ torch.linalg.solve(gram, X.mT @ Y)
    distribution = ensemble.distribution(NEW, 0.7)
    torch.testing.assert_close(distribution.mean, NEW @ mean)
    torch.testing.assert_close(distribution.covariance, NEW @ decay @ decay.mT @ NEW.mT)
    change = decay - torch.eye(3, dtype=DOUBLE)
    assert ensemble.parameter_distance(0.7) == pytest.approx(float(mean.square().sum() + change.square().sum()))


def test_error_and_information_gain_follow_from_the_distribution() -> None:
    ensemble = InfiniteEnsemble.fit(fully_connected(1, ReLU()), X, Y)
    distribution, prior = ensemble.distribution(NEW, 2.0), ensemble.distribution(NEW, 0.0)
    exact = gaussian_kl(distribution.mean, distribution.covariance, prior.mean, prior.covariance)
    assert ensemble.information_gain(NEW, 2.0) == pytest.approx(float(exact))
    samples = distribution.sample(200_000, generator=torch.Generator().manual_seed(0))
    error = (samples - Y[:2]).square().mean()
    assert ensemble.expected_error(NEW, Y[:2], 2.0) == pytest.approx(float(error), rel=0.02)
    torch.testing.assert_close(ensemble.distribution(X, inf).mean, Y)


def test_mutual_information_matches_numerical_integration() -> None:
    """Two Gaussians, integrated on a fine uniform grid."""
    means, variances = torch.tensor([0.0, 1.5], dtype=DOUBLE), torch.tensor([1.0, 0.3], dtype=DOUBLE)
    z = torch.linspace(-12, 12, 200_001, dtype=DOUBLE)
    density = torch.exp(-((z[:, None] - means) ** 2) / (2 * variances)) / (2 * torch.pi * variances).sqrt()
    ratio = torch.where(density > 0, (density / density.mean(1, keepdim=True)).log(), 0.0)
    exact = torch.trapezoid((density * ratio).mean(1), z)
    torch.testing.assert_close(input_mutual_information(means, variances), exact, rtol=0, atol=1e-4)
    torch.testing.assert_close(
        label_mutual_information(means, variances, torch.tensor([0, 1])), exact, rtol=0, atol=1e-4
    )
    uninformative = label_mutual_information(means, variances, torch.tensor([3, 3]))
    torch.testing.assert_close(uninformative, torch.zeros((), dtype=DOUBLE))
    torch.testing.assert_close(input_mutual_information(means, variances, base=2.0) * log(2), exact, rtol=0, atol=1e-4)


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match="the same positive length; got 3 points, 2 targets"):
        InfiniteEnsemble.fit(fully_connected(1, ReLU()), X, Y[:2])
    with pytest.raises(ValueError, match="need positive variances and finite means; got a smallest variance of 0"):
        input_mutual_information(torch.zeros(2), torch.tensor([0.0, 1.0]))
