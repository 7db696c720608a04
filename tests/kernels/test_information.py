"""The law of infinite ensembles and the information in it."""

from math import inf, log

import pytest
import torch

from parnassus.kernels import (
    Identity,
    InfiniteEnsemble,
    ReLU,
    fully_connected,
    information_with_inputs,
    information_with_labels,
)
from parnassus.probability import gaussian_kl

DOUBLE = torch.float64
X = torch.tensor([[1.0, 0.0, 0.2], [0.6, 0.8, 0.0], [-0.3, 0.5, 1.0]], dtype=DOUBLE)
Y = torch.tensor([1.0, -1.0, 0.5], dtype=DOUBLE)
NEW = torch.tensor([[0.2, 0.9, -0.4], [1.0, 1.0, 1.0]], dtype=DOUBLE)


def test_a_linear_model_is_known_exactly() -> None:
    """With f = wᵀx and w ~ N(0, I): K = Θ = xᵀx', and w_τ = e^{−τXᵀX} w_0 + … is Gaussian in three dimensions."""
    ensemble = InfiniteEnsemble.fit(fully_connected(0, Identity()), X, Y)
    gram = X.mT @ X
    left = torch.linalg.matrix_exp(-0.7 * gram)
    mean = (torch.eye(3, dtype=DOUBLE) - left) @ torch.linalg.solve(gram, X.mT @ Y)
    law = ensemble.law(NEW, 0.7)
    torch.testing.assert_close(law.mean, NEW @ mean)
    torch.testing.assert_close(law.covariance, NEW @ left @ left.mT @ NEW.mT)
    way = left - torch.eye(3, dtype=DOUBLE)
    assert ensemble.parameter_distance(0.7) == pytest.approx(float(mean.square().sum() + way.square().sum()))


def test_error_and_learning_follow_from_the_law() -> None:
    ensemble = InfiniteEnsemble.fit(fully_connected(1, ReLU()), X, Y)
    law, prior = ensemble.law(NEW, 2.0), ensemble.law(NEW, 0.0)
    exact = gaussian_kl(law.mean, law.covariance, prior.mean, prior.covariance)
    assert ensemble.learned(NEW, 2.0) == pytest.approx(float(exact))
    samples = law.sample(200_000, generator=torch.Generator().manual_seed(0))
    error = (samples - Y[:2]).square().mean()
    assert ensemble.expected_error(NEW, Y[:2], 2.0) == pytest.approx(float(error), rel=0.02)
    torch.testing.assert_close(ensemble.law(X, inf).mean, Y)


def test_information_of_two_gaussians_is_that_of_their_mixture() -> None:
    """Against an integral on a fine, even grid."""
    means, variances = torch.tensor([0.0, 1.5], dtype=DOUBLE), torch.tensor([1.0, 0.3], dtype=DOUBLE)
    z = torch.linspace(-12, 12, 200_001, dtype=DOUBLE)
    density = torch.exp(-((z[:, None] - means) ** 2) / (2 * variances)) / (2 * torch.pi * variances).sqrt()
    ratio = torch.where(density > 0, (density / density.mean(1, keepdim=True)).log(), 0.0)
    exact = torch.trapezoid((density * ratio).mean(1), z)
    torch.testing.assert_close(information_with_inputs(means, variances), exact, rtol=0, atol=1e-4)
    torch.testing.assert_close(
        information_with_labels(means, variances, torch.tensor([0, 1])), exact, rtol=0, atol=1e-4
    )
    nothing = information_with_labels(means, variances, torch.tensor([3, 3]))
    torch.testing.assert_close(nothing, torch.zeros((), dtype=DOUBLE))
    torch.testing.assert_close(information_with_inputs(means, variances, base=2.0) * log(2), exact, rtol=0, atol=1e-4)


def test_what_cannot_work_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="a target for each point, and at least one; got 3 points, 2 targets"):
        InfiniteEnsemble.fit(fully_connected(1, ReLU()), X, Y[:2])
    with pytest.raises(ValueError, match="need positive variances and finite means; the least variance is 0"):
        information_with_inputs(torch.zeros(2), torch.tensor([0.0, 1.0]))
