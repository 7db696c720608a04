"""Claims about the ways to the gradient of the ELBO (Diehl sec. 6, book sec. 6.3)."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.func import grad, vmap

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, rate
from parnassus.latent.deep_latent_gaussian import LinearGaussian
from parnassus.latent.gradients import (
    Estimator,
    NormalParameters,
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
DRAWS = 40_000


@cache
def problem() -> tuple[Callable[[Tensor], Tensor], NormalParameters, Tensor, Tensor]:
    """A linear model with z ↦ log p(x|z), a q that is not the posterior, its ELBO and the ELBO's exact gradient."""
    torch.manual_seed(0)
    weight = torch.tensor([[1.0, 0.2], [-0.4, 0.9], [0.3, 0.5]], dtype=DOUBLE)
    model = LinearGaussian(weight, torch.zeros(3, dtype=DOUBLE), torch.eye(3, dtype=DOUBLE))
    x = torch.tensor([1.0, 0.4, -0.6], dtype=DOUBLE)
    q = NormalParameters(torch.tensor([0.2, -0.3], dtype=DOUBLE), torch.tensor([-0.5, 0.1], dtype=DOUBLE))

    def elbo(parameters: NormalParameters) -> Tensor:
        covariance = parameters.log_variance.exp().diag()[None]
        return model.elbo(x[None], parameters.mean[None], covariance)[0]

    def log_likelihood(z: Tensor) -> Tensor:
        value: Tensor = model.likelihood(z).log_prob(x)
        return value

    return log_likelihood, q, elbo(q), torch.cat(grad(elbo)(q))


def gradients(estimator: Estimator, *, seed: int = 0, samples: int = DRAWS) -> Tensor:
    """Rows of gradients in (μ, log σ²) for the problem."""
    log_likelihood, q, _, _ = problem()
    noise = torch.randn(samples, 2, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)
    return torch.cat(estimator(log_likelihood, q, noise), 1)


def _off_by(estimator: Estimator) -> Evidence:
    """The mean gradient lies within four standard errors of the exact one, in every coordinate."""
    rows, exact = gradients(estimator), problem()[3]
    error = rows.std(0) / len(rows) ** 0.5
    return at_most((rows.mean(0) - exact).abs(), 4 * error + 1e-9)


def spread(estimator: Estimator) -> float:
    """The total variance of one draw's gradient."""
    return float(gradients(estimator).var(0).sum())


@claim("D6.0.15", "D6.0.16", "D6.0.17", "D6.0.18", "B6.3-1")
def every_way_has_the_right_mean() -> Evidence:
    """Differences, reparametrisation, analytic KL, curvature and score function all estimate ∇L (Diehl sec. 6)."""
    return all_of(
        differences=_off_by(by_differences),
        reparametrised=_off_by(reparametrised),
        analytic_kl=_off_by(with_analytic_kl),
        curvature=_off_by(by_curvature),
        score_function=_off_by(score_function),
        with_baseline=_off_by(score_function_with_baseline),
    )


@claim("D6.0.15")
def draws_held_fixed_give_noise_about_zero() -> Evidence:
    """Autodiff with the draws taken as constants gives −∇ log q, of mean 0: pure noise, no gradient (Diehl sec. 6)."""
    rows, exact = gradients(held_fixed), problem()[3]
    error = rows.std(0) / len(rows) ** 0.5
    return all_of(
        mean_is_zero=at_most(rows.mean(0).abs(), 4 * error),
        and_not_the_gradient=at_least(((rows.mean(0) - exact).abs() / error).max(), 20.0),
        but_it_is_not_nothing=at_least(rows.std(0), 0.5),
    )


@claim("D6.0.15")
def differences_need_common_noise() -> Evidence:
    """With the same noise in both runs a difference is the reparametrised gradient; with fresh noise its variance
    grows like 1/h² (Diehl sec. 6).
    """
    log_likelihood, q, _, _ = problem()
    noise, fresh = torch.randn(2, 4_000, 2, generator=torch.Generator().manual_seed(1), dtype=DOUBLE)
    common = torch.cat(by_differences(log_likelihood, q, noise), 1)
    widths = torch.tensor([0.1, 0.03, 0.01, 0.003, 0.001], dtype=DOUBLE)
    variances = torch.stack(
        [
            torch.cat(by_differences(log_likelihood, q, noise, width=float(width), fresh=fresh), 1).var(0).sum()
            for width in widths
        ]
    )
    return all_of(
        common=close(common, torch.cat(reparametrised(log_likelihood, q, noise), 1), atol=1e-6),
        fresh=rate(widths, variances, -2.0, atol=0.02),
    )


@claim("D6.0.16", "B6.3-1")
def reparametrised_gradients_vary_less() -> Evidence:
    """One reparametrised gradient varies several times less than the score function's; a baseline helps the latter."""
    variance = {"path": spread(reparametrised), "score": spread(score_function)}
    variance["baseline"] = spread(score_function_with_baseline)
    return all_of(
        score_by_path=at_least(variance["score"] / variance["path"], 5.0),
        baseline_by_path=at_least(variance["baseline"] / variance["path"], 1.5),
        baseline_by_score=at_most(variance["baseline"] / variance["score"], 0.5),
    )


@claim("D6.0.16")
def the_score_function_suffers_from_dimensions() -> Evidence:
    """As the code grows the variance of a mean's gradient grows for the score function, not by paths (Diehl sec. 6)."""
    sizes = torch.tensor([2, 4, 8, 16, 32])
    path, score = [], []
    for size in sizes.tolist():
        q = NormalParameters(torch.full((size,), 0.5, dtype=DOUBLE), torch.zeros(size, dtype=DOUBLE))
        noise = torch.randn(8_000, size, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)

        def log_likelihood(z: Tensor) -> Tensor:
            return -(z - 1).square().sum() / 2

        path.append(reparametrised(log_likelihood, q, noise).mean.var(0).mean())
        score.append(score_function(log_likelihood, q, noise).mean.var(0).mean())
    return all_of(
        score=rate(sizes, torch.stack(score), 1.9, atol=0.4), path=rate(sizes, torch.stack(path), 0.0, atol=0.1)
    )


@claim("D6.0.17")
def an_exact_kl_saves_variance_usually() -> Evidence:
    """With log p(x|z) concave in z the exact KL saves variance; where it is convex the drawn prior term would have
    cancelled some, and the exact KL costs (Diehl sec. 6).
    """
    q = problem()[1]
    noise = torch.randn(4_000, 2, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)

    def convex(z: Tensor) -> Tensor:
        return 0.4 * z.square().sum()

    exact_kl, drawn_kl = (way(convex, q, noise).mean.var(0).sum() for way in (with_analytic_kl, reparametrised))
    return all_of(
        concave=at_most(spread(with_analytic_kl) / spread(reparametrised), 0.5),
        convex=at_least(exact_kl / drawn_kl, 2.0),
    )


@erratum("D6.0.15", printed="(1/N) Σ_{m=1}^M log p(x, Z_m)/q(Z_m|x)", right="(1/M) Σ_{m=1}^M …")
def an_average_divides_by_its_number_of_terms() -> Correction:
    """With N = 64 observations and M draws of each, a sum of M terms over N misses the ELBO (Diehl sec. 6)."""
    log_likelihood, q, elbo, _ = problem()
    noise = torch.randn(DRAWS, 2, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
    weights: Tensor = vmap(lambda z: log_weight(log_likelihood, q, z))(draws(q, noise))
    error = float(weights.std()) / DRAWS**0.5
    return Correction(
        printed=close(weights.sum() / 64, elbo, atol=4 * error), corrected=close(weights.mean(), elbo, atol=4 * error)
    )
