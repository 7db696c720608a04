"""Regression in blocks equals GP regression with the estimated amplitude."""

import pytest
import torch

from parnassus.kernels import (
    NTK,
    BlockedRegression,
    ConjugateGradients,
    GPRegression,
    RBFKernel,
    ReLU,
    ScaledKernel,
    fully_connected,
)
from parnassus.probability import standard_normal, uniform_samples

X = uniform_samples(60, 3)
T = standard_normal(60, 2, seed=1)
NEW = uniform_samples(25, 3, seed=2)


@pytest.mark.parametrize("memory", [None, 0])
def test_predictions_match_gp_regression(memory: int | None) -> None:
    kernel = RBFKernel(0.6)
    fit = BlockedRegression.fit(kernel, X, T, ratio=0.05, block=16, memory=memory)
    assert isinstance(fit.solver, ConjugateGradients) == (memory == 0)
    exact = GPRegression.fit(ScaledKernel(kernel, fit.amplitude), X, T, noise_variance=0.05 * fit.amplitude)
    for actual, expected in zip(fit.predict(NEW), exact.predict(NEW), strict=True):
        torch.testing.assert_close(actual, expected.detach(), rtol=1e-6, atol=1e-8)


def test_amplitude_maximises_the_likelihood() -> None:
    fit = BlockedRegression.fit(RBFKernel(0.6), X, T, ratio=0.05)

    def likelihood(amplitude: float) -> float:
        return float(
            GPRegression.fit(ScaledKernel(RBFKernel(0.6), amplitude), X, T, noise_variance=0.05 * amplitude)
            .log_marginal_likelihood()
            .detach()
        )

    best = likelihood(fit.amplitude)
    assert best > max(likelihood(factor * fit.amplitude) for factor in (0.95, 1.05))


def test_noise_free_ntk_mean_interpolates_the_targets() -> None:
    fit = BlockedRegression.fit(NTK(fully_connected(2, ReLU(), bias_variance=0.1)), X, T, ratio=0.0)
    prediction = fit.predict(X)
    torch.testing.assert_close(prediction.mean, T, rtol=0, atol=1e-6)
    assert float(prediction.variance.max()) < 1e-6 * fit.amplitude


def test_residual_in_single_precision_includes_rounding_of_the_kernel() -> None:
    fit = BlockedRegression.fit(RBFKernel(0.6), X.float(), T.float(), ratio=1e-2)
    exact = RBFKernel(0.6)(X.float().double()).detach() + 1e-2 * torch.eye(60).double()
    residual = (T.float().double() - exact @ fit.solution.weights.double()).norm(dim=0) / T.float().double().norm(dim=0)
    assert fit.solution.residual == pytest.approx(float(residual.max()), rel=1e-6)
    assert fit.solution.residual > 10 * BlockedRegression.fit(RBFKernel(0.6), X, T, ratio=1e-2).solution.residual


def test_invalid_input_raises() -> None:
    with pytest.raises(ValueError, match="got 60 points, 3 targets"):
        BlockedRegression.fit(RBFKernel(), X, T[:3], ratio=0.1)
    with pytest.raises(ValueError, match="must be finite"):
        BlockedRegression.fit(RBFKernel(), X * float("nan"), T, ratio=0.1)
    with pytest.raises(ValueError, match="same features"):
        BlockedRegression.fit(RBFKernel(), X, T, ratio=0.1).predict(NEW[:, :2])
