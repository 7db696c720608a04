"""Claims about estimators of the gradient of the ELBO (Diehl sec. 6, book sec. 6.3)."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.func import grad, vmap

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate
from parnassus.latent.variational.deep_latent_gaussian import LinearGaussian
from parnassus.latent.variational.gradient_estimators import (
    GradientEstimator,
    analytic_kl_gradient,
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
NUM_DRAWS = 40_000


@cache
def problem() -> tuple[Callable[[Tensor], Tensor], GaussianParameters, Tensor, Tensor]:
    """A linear model's z ↦ log p(x|z), a q that is not the posterior, its ELBO and the ELBO's exact gradient."""
    torch.manual_seed(0)
    weight = torch.tensor([[1.0, 0.2], [-0.4, 0.9], [0.3, 0.5]], dtype=DOUBLE)
    model = LinearGaussian(weight, torch.zeros(3, dtype=DOUBLE), torch.eye(3, dtype=DOUBLE))
    x = torch.tensor([1.0, 0.4, -0.6], dtype=DOUBLE)
    q = GaussianParameters(torch.tensor([0.2, -0.3], dtype=DOUBLE), torch.tensor([-0.5, 0.1], dtype=DOUBLE))

    def elbo(parameters: GaussianParameters) -> Tensor:
        covariance = parameters.log_variance.exp().diag()[None]
        return model.elbo(x[None], parameters.mean[None], covariance)[0]

    def log_likelihood(z: Tensor) -> Tensor:
        value: Tensor = model.likelihood(z).log_prob(x)
        return value

    return log_likelihood, q, elbo(q), torch.cat(grad(elbo)(q))


def gradients(estimator: GradientEstimator, *, seed: int = 0, samples: int = NUM_DRAWS) -> Tensor:
    """Rows of gradients with respect to (μ, log σ²)."""
    log_likelihood, q, _, _ = problem()
    noise = standard_normal(samples, 2, seed=seed)
    return torch.cat(estimator(log_likelihood, q, noise), 1)


def _is_unbiased(estimator: GradientEstimator) -> Evidence:
    """The mean gradient is within four standard errors of the exact one in every coordinate."""
    rows, exact = gradients(estimator), problem()[3]
    error = rows.std(0) / len(rows) ** 0.5
    return less_equal((rows.mean(0) - exact).abs(), 4 * error + 1e-9)


def total_variance(estimator: GradientEstimator) -> float:
    """Total variance of the gradient from one draw."""
    return float(gradients(estimator).var(0).sum())


@claim("D6.0.15", "D6.0.16", "D6.0.17", "D6.0.18", "B6.3-1")
def all_gradient_estimators_are_unbiased() -> Evidence:
    """Differences, reparametrisation, analytic KL, curvature and score function are unbiased for ∇L (Diehl sec. 6)."""
    return all_of(
        differences=_is_unbiased(finite_difference_gradient),
        reparametrised=_is_unbiased(reparametrisation_gradient),
        analytic_kl=_is_unbiased(analytic_kl_gradient),
        curvature=_is_unbiased(bonnet_price_gradient),
        score_function=_is_unbiased(score_function_gradient),
        with_baseline=_is_unbiased(score_function_gradient_with_baseline),
    )


@claim("D6.0.15")
def fixed_samples_give_a_gradient_of_mean_zero() -> Evidence:
    """Autodiff with the draws taken as constants gives −∇ log q, which has mean 0 (Diehl sec. 6)."""
    rows, exact = gradients(fixed_sample_gradient), problem()[3]
    error = rows.std(0) / len(rows) ** 0.5
    return all_of(
        mean_is_zero=less_equal(rows.mean(0).abs(), 4 * error),
        differs_from_the_gradient=greater_equal(((rows.mean(0) - exact).abs() / error).max(), 20.0),
        standard_deviation=greater_equal(rows.std(0), 0.5),
    )


@claim("D6.0.15")
def finite_differences_require_common_noise() -> Evidence:
    """With common noise a finite difference is the reparametrised gradient; with fresh noise its variance
    grows as 1/h² (Diehl sec. 6).
    """
    log_likelihood, q, _, _ = problem()
    noise, fresh = standard_normal(2, 4_000, 2, seed=1)
    common = torch.cat(finite_difference_gradient(log_likelihood, q, noise), 1)
    step_sizes = torch.tensor([0.1, 0.03, 0.01, 0.003, 0.001], dtype=DOUBLE)
    variances = torch.stack(
        [
            torch.cat(
                finite_difference_gradient(log_likelihood, q, noise, step=float(step_size), second_noise=fresh), 1
            )
            .var(0)
            .sum()
            for step_size in step_sizes
        ]
    )
    return all_of(
        common=close(common, torch.cat(reparametrisation_gradient(log_likelihood, q, noise), 1), atol=1e-6),
        fresh=rate(step_sizes, variances, -2.0, atol=0.02),
    )


@claim("D6.0.16", "B6.3-1")
def reparametrised_gradients_have_smaller_variance() -> Evidence:
    """Reparametrised gradients have a smaller variance than score-function gradients, even with a baseline."""
    variance = {"path": total_variance(reparametrisation_gradient), "score": total_variance(score_function_gradient)}
    variance["baseline"] = total_variance(score_function_gradient_with_baseline)
    return all_of(
        score_over_path=greater_equal(variance["score"] / variance["path"], 5.0),
        baseline_over_path=greater_equal(variance["baseline"] / variance["path"], 1.5),
        baseline_over_score=less_equal(variance["baseline"] / variance["score"], 0.5),
    )


@claim("D6.0.16")
def the_variance_of_the_score_function_gradient_grows_with_the_dimension() -> Evidence:
    """The variance grows with the code's dimension for the score function, not for reparametrisation (Diehl sec. 6)."""
    dimensions = torch.tensor([2, 4, 8, 16, 32])
    path, score = [], []
    for dimension in dimensions.tolist():
        q = GaussianParameters(torch.full((dimension,), 0.5, dtype=DOUBLE), torch.zeros(dimension, dtype=DOUBLE))
        noise = standard_normal(8_000, dimension)

        def log_likelihood(z: Tensor) -> Tensor:
            return -(z - 1).square().sum() / 2

        path.append(reparametrisation_gradient(log_likelihood, q, noise).mean.var(0).mean())
        score.append(score_function_gradient(log_likelihood, q, noise).mean.var(0).mean())
    return all_of(
        score=rate(dimensions, torch.stack(score), 1.9, atol=0.4),
        path=rate(dimensions, torch.stack(path), 0.0, atol=0.1),
    )


@claim("D6.0.17")
def an_exact_kl_reduces_the_variance_for_concave_likelihoods() -> Evidence:
    """If log p(x|z) is concave in z the exact KL reduces the variance; if it is convex the sampled prior term would
    partly cancel it, and the exact KL increases the variance (Diehl sec. 6).
    """
    q = problem()[1]
    noise = standard_normal(4_000, 2)

    def convex(z: Tensor) -> Tensor:
        return 0.4 * z.square().sum()

    exact_kl, sampled_kl = (
        estimator(convex, q, noise).mean.var(0).sum()
        for estimator in (analytic_kl_gradient, reparametrisation_gradient)
    )
    return all_of(
        concave=less_equal(total_variance(analytic_kl_gradient) / total_variance(reparametrisation_gradient), 0.5),
        convex=greater_equal(exact_kl / sampled_kl, 2.0),
    )


@erratum("D6.0.15", printed="(1/N) Σ_{m=1}^M log p(x, Z_m)/q(Z_m|x)", right="(1/M) Σ_{m=1}^M …")
def an_average_divides_by_its_number_of_terms() -> Correction:
    """With N = 64 observations and M draws each, a sum of M terms divided by N misses the ELBO (Diehl sec. 6)."""
    log_likelihood, q, elbo, _ = problem()
    noise = standard_normal(NUM_DRAWS, 2)
    weights: Tensor = vmap(lambda z: log_weight(log_likelihood, q, z))(codes_from_noise(q, noise))
    error = float(weights.std()) / NUM_DRAWS**0.5
    return Correction(
        printed=close(weights.sum() / 64, elbo, atol=4 * error), corrected=close(weights.mean(), elbo, atol=4 * error)
    )
