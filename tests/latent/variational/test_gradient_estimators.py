"""Gradient estimators on functions whose expectation is known."""

import pytest
import torch
from torch import Tensor

from parnassus.latent.variational.gradient_estimators import (
    GradientEstimator,
    analytic_kl_gradient,
    bonnet_price_derivatives,
    bonnet_price_gradient,
    codes_from_noise,
    finite_difference_gradient,
    fixed_sample_gradient,
    log_weight,
    reparametrisation_gradient,
    score_function_gradient,
    score_function_gradient_with_baseline,
)
from parnassus.latent.variational.reparametrisation import GaussianParameters
from parnassus.probability import standard_normal

DOUBLE = torch.float64
Q = GaussianParameters(torch.tensor([0.3, -0.5], dtype=DOUBLE), torch.tensor([-0.7, 0.2], dtype=DOUBLE))
TARGET = torch.tensor([1.0, 0.5], dtype=DOUBLE)
UNBIASED: dict[str, GradientEstimator] = {
    "differences": finite_difference_gradient,
    "reparametrised": reparametrisation_gradient,
    "analytic KL": analytic_kl_gradient,
    "curvature": bonnet_price_gradient,
    "score function": score_function_gradient,
    "baseline": score_function_gradient_with_baseline,
}


def log_likelihood(z: Tensor) -> Tensor:
    """Log density of x = (1, ½) under N(z, I) up to a constant."""
    return -(z - TARGET).square().sum() / 2


def exact_gradient() -> Tensor:
    """∂L/∂μ = t − 2μ and ∂L/∂log σ² = ½ − σ²."""
    return torch.cat([TARGET - 2 * Q.mean, 0.5 - Q.log_variance.exp()])


def noise(samples: int, seed: int = 0) -> Tensor:
    return standard_normal(samples, 2, seed=seed)


@pytest.mark.parametrize("name", UNBIASED)
def test_estimators_are_unbiased(name: str) -> None:
    estimates = torch.cat(UNBIASED[name](log_likelihood, Q, noise(30_000)), 1)
    assert estimates.shape == (30_000, 4)
    error = estimates.std(0) / 30_000**0.5
    assert bool(((estimates.mean(0) - exact_gradient()).abs() <= 4 * error + 1e-9).all())


def test_fixed_sample_gradient_is_independent_of_the_model() -> None:
    shifted = fixed_sample_gradient(lambda z: log_likelihood(z - 7), Q, noise(50))
    torch.testing.assert_close(shifted, fixed_sample_gradient(log_likelihood, Q, noise(50)))
    score = torch.cat([noise(50) / (Q.log_variance / 2).exp(), (noise(50).square() - 1) / 2], 1)
    torch.testing.assert_close(torch.cat(shifted, 1), -score)


def test_finite_differences_with_common_noise_match_reparametrisation() -> None:
    torch.testing.assert_close(
        torch.cat(finite_difference_gradient(log_likelihood, Q, noise(20)), 1),
        torch.cat(reparametrisation_gradient(log_likelihood, Q, noise(20)), 1),
        rtol=1e-6,
        atol=1e-6,
    )


def test_independent_noise_increases_the_variance_of_differences() -> None:
    common = finite_difference_gradient(log_likelihood, Q, noise(200), step=1e-3)
    independent = finite_difference_gradient(log_likelihood, Q, noise(200), step=1e-3, second_noise=noise(200, seed=1))
    assert float(independent.mean.var()) > 1e4 * float(common.mean.var())


def test_mean_log_weight_is_the_elbo() -> None:
    z = codes_from_noise(Q, noise(30_000))
    weights = torch.stack([log_weight(log_likelihood, Q, row) for row in z[:5_000]])
    variance = Q.log_variance.exp()
    fit = -((Q.mean - TARGET).square() + variance).sum() / 2
    kl = (variance + Q.mean.square() - 1 - Q.log_variance).sum() / 2
    assert abs(float(weights.mean() - (fit - kl))) < 4 * float(weights.std()) / 5_000**0.5


def test_bonnet_price_derivatives_of_a_quadratic() -> None:
    A = torch.tensor([[2.0, 0.3], [0.3, -1.0]], dtype=DOUBLE)
    z = noise(6)
    gradient, half_hessian = bonnet_price_derivatives(lambda point: point @ A @ point / 2, z)
    torch.testing.assert_close(gradient, z @ A)
    torch.testing.assert_close(half_hessian, (A / 2).expand(6, 2, 2))


def test_baseline_removes_the_variance_of_a_constant() -> None:
    def shifted(z: Tensor) -> Tensor:
        return log_likelihood(z) + 100

    variance_ratio = (
        score_function_gradient(shifted, Q, noise(500)).mean.var()
        / score_function_gradient(log_likelihood, Q, noise(500)).mean.var()
    )
    assert float(variance_ratio) > 100
    torch.testing.assert_close(
        score_function_gradient_with_baseline(shifted, Q, noise(500)),
        score_function_gradient_with_baseline(log_likelihood, Q, noise(500)),
    )


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match="step must be positive; got step=0"):
        finite_difference_gradient(log_likelihood, Q, noise(3), step=0.0)
    with pytest.raises(ValueError, match="needs at least two samples; got 1"):
        score_function_gradient_with_baseline(log_likelihood, Q, noise(1))
