"""Ways to a gradient, judged by functions whose mean is known."""

import pytest
import torch
from torch import Tensor

from parnassus.latent.gradients import (
    Estimator,
    NormalParameters,
    bonnet_price,
    by_curvature,
    by_differences,
    draws,
    held_fixed,
    log_weight,
    reparametrised,
    score_function,
    score_function_with_baseline,
    with_analytic_kl,
)

DOUBLE = torch.float64
Q = NormalParameters(torch.tensor([0.3, -0.5], dtype=DOUBLE), torch.tensor([-0.7, 0.2], dtype=DOUBLE))
TARGET = torch.tensor([1.0, 0.5], dtype=DOUBLE)
UNBIASED: dict[str, Estimator] = {
    "differences": by_differences,
    "reparametrised": reparametrised,
    "analytic KL": with_analytic_kl,
    "curvature": by_curvature,
    "score function": score_function,
    "baseline": score_function_with_baseline,
}


def log_likelihood(z: Tensor) -> Tensor:
    """Of x = 1, ½ under N(z, I), less its constant."""
    return -(z - TARGET).square().sum() / 2


def exact() -> Tensor:
    """∂L/∂μ = t − 2μ and ∂L/∂log σ² = ½ − σ², by hand."""
    return torch.cat([TARGET - 2 * Q.mean, 0.5 - Q.log_variance.exp()])


def noise(samples: int, seed: int = 0) -> Tensor:
    return torch.randn(samples, 2, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


@pytest.mark.parametrize("name", UNBIASED)
def test_the_mean_is_the_gradient(name: str) -> None:
    rows = torch.cat(UNBIASED[name](log_likelihood, Q, noise(30_000)), 1)
    assert rows.shape == (30_000, 4)
    error = rows.std(0) / 30_000**0.5
    assert bool(((rows.mean(0) - exact()).abs() <= 4 * error + 1e-9).all())


def test_draws_held_fixed_know_nothing_of_the_model() -> None:
    elsewhere = held_fixed(lambda z: log_likelihood(z - 7), Q, noise(50))
    torch.testing.assert_close(elsewhere, held_fixed(log_likelihood, Q, noise(50)))
    score = torch.cat([noise(50) / (Q.log_variance / 2).exp(), (noise(50).square() - 1) / 2], 1)
    torch.testing.assert_close(torch.cat(elsewhere, 1), -score)


def test_differences_with_common_noise_are_path_gradients() -> None:
    torch.testing.assert_close(
        torch.cat(by_differences(log_likelihood, Q, noise(20)), 1),
        torch.cat(reparametrised(log_likelihood, Q, noise(20)), 1),
        rtol=1e-6,
        atol=1e-6,
    )


def test_fresh_noise_spoils_differences() -> None:
    common = by_differences(log_likelihood, Q, noise(200), width=1e-3)
    fresh = by_differences(log_likelihood, Q, noise(200), width=1e-3, fresh=noise(200, seed=1))
    assert float(fresh.mean.var()) > 1e4 * float(common.mean.var())


def test_the_weights_have_the_elbo_as_their_mean() -> None:
    z = draws(Q, noise(30_000))
    weights = torch.stack([log_weight(log_likelihood, Q, each) for each in z[:5_000]])
    variance = Q.log_variance.exp()
    fit = -((Q.mean - TARGET).square() + variance).sum() / 2
    kl = (variance + Q.mean.square() - 1 - Q.log_variance).sum() / 2
    assert abs(float(weights.mean() - (fit - kl))) < 4 * float(weights.std()) / 5_000**0.5


def test_slope_and_half_curvature_of_a_quadratic() -> None:
    A = torch.tensor([[2.0, 0.3], [0.3, -1.0]], dtype=DOUBLE)
    z = noise(6)
    slope, half_curvature = bonnet_price(lambda point: point @ A @ point / 2, z)
    torch.testing.assert_close(slope, z @ A)
    torch.testing.assert_close(half_curvature, (A / 2).expand(6, 2, 2))


def test_a_constant_costs_the_score_function_and_not_its_baseline() -> None:
    def lifted(z: Tensor) -> Tensor:
        return log_likelihood(z) + 100

    plain = score_function(lifted, Q, noise(500)).mean.var() / score_function(log_likelihood, Q, noise(500)).mean.var()
    assert float(plain) > 100
    torch.testing.assert_close(
        score_function_with_baseline(lifted, Q, noise(500)), score_function_with_baseline(log_likelihood, Q, noise(500))
    )


def test_what_cannot_work_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="the width of a difference must be positive; got width=0"):
        by_differences(log_likelihood, Q, noise(3), width=0.0)
    with pytest.raises(ValueError, match="needs two draws or more; got 1"):
        score_function_with_baseline(log_likelihood, Q, noise(1))
