"""Claims about Bayes' theorem, expectations, the normal density and Jensen's inequality (Zhao secs. 2, 3 and 12)."""

from math import pi, sqrt

import torch
from torch import Tensor
from torch.distributions import Normal

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, raises, rate
from parnassus.probability.bayes import bayes, posterior_table
from parnassus.probability.claims.distances import random_distributions
from parnassus.probability.divergences import kl_divergence
from parnassus.probability.expectation import (
    covariance,
    expectation,
    expectation_by_quadrature,
    expectation_by_sampling,
    variance,
)
from parnassus.probability.jensen import PointFunction, jensen, jensen_by_merging, latent_bound
from parnassus.probability.normal import normal_density, normal_log_density

RETURNS = torch.tensor([0.0, 2.0, 10.0], dtype=torch.float64)
CHANCES = torch.tensor([0.5, 0.4, 0.1], dtype=torch.float64)


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@claim("Z2.6")
def bayes_inverts_a_table() -> Evidence:
    """Posterior and evidence give back the joint table; rows sum to one, and going back finds prior and likelihood."""
    prior, likelihood = random_distributions(1, 4)[0], random_distributions(4, 6, seed=1)
    posterior, evidence = posterior_table(prior, likelihood)
    back_likelihood, back_prior = posterior_table(evidence, posterior)
    single = [bayes(float(likelihood[k, 2]), float(prior[k]), float(evidence[2])) for k in range(4)]
    impossible = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    return all_of(
        joint=close(posterior * evidence[:, None], (prior[:, None] * likelihood).T, atol=1e-15),
        rows=close(posterior.sum(-1), 1.0, atol=1e-15),
        two_events=close(torch.tensor(single, dtype=torch.float64), posterior[2], atol=1e-15),
        prior_again=close(back_prior, prior, atol=1e-15),
        likelihood_again=close(back_likelihood, likelihood, atol=1e-15),
        rare_illness=close(bayes(1.0, 0.0015, 0.0015 + 0.01 * 0.9985), 0.1306, atol=1e-4),
        impossible=raises(ValueError, lambda: posterior_table(prior[:2] / prior[:2].sum(), impossible)),
        a_cause_without_a_chance_stays_so=close(bayes(0.0, 0.0, 0.3), 0.0),  # P(B|A) is anything where P(A) = 0
        impossible_event=raises(ValueError, lambda: bayes(0.5, 0.5, 0.0)),
    )


@claim("Z2.7")
def expectations_of_a_table() -> Evidence:
    """Returns 0, 2, 10 with chances ½, 0.4, 0.1 have mean 1.8 and Var = E[X²] − E[X]² = 8.36; vᵀΣv = Var(vᵀX)."""
    values, p, v = normals(8, 3), random_distributions(1, 8)[0], normals(3, seed=1)
    second_moment = expectation(RETURNS.square(), CHANCES)
    return all_of(
        mean=close(expectation(RETURNS, CHANCES), 1.8, atol=1e-15),
        variance=close(variance(RETURNS, CHANCES), 8.36, atol=1e-14),
        by_moments=close(variance(RETURNS, CHANCES), second_moment - 1.8**2, atol=1e-14),
        linear=close(expectation(values @ v, p), expectation(values, p) @ v, atol=1e-15),
        along_a_direction=close(v @ covariance(values, p) @ v, variance(values @ v, p), atol=1e-14),
        never_negative=at_least(torch.linalg.eigvalsh(covariance(values, p)), 0.0),
    )


@claim("Z2.7")
def quadrature_and_sampling_agree() -> Evidence:
    """E[cos X] = e^(−½) for a standard normal X, by quadrature to rounding, by n draws with an error ∝ 1/√n."""
    exact = torch.tensor(-0.5, dtype=torch.float64).exp()
    integral = expectation_by_quadrature(
        torch.cos, lambda x: normal_density(x, mean=0.0, variance=1.0), low=-12.0, high=12.0
    )
    counts = torch.tensor([100, 400, 1_600, 6_400], dtype=torch.float64)
    errors = torch.stack(
        [(normals(400, int(count), seed=int(count)).cos().mean(1) - exact).square().mean().sqrt() for count in counts]
    )
    estimate = expectation_by_sampling(torch.cos, normals(100_000))
    return all_of(
        quadrature=close(integral, exact, atol=1e-14),
        within_four_errors=at_most((estimate.mean - exact).abs(), 4 * estimate.error),
        root_law=rate(counts, errors, -0.5, atol=0.05),
    )


@claim("Z3.6")
def the_normal_density_has_mass_mean_and_variance() -> Evidence:
    """It integrates to 1 with mean μ and variance σ², and is the library's once that is given σ (Zhao sec. 3)."""
    mean, sigma = 1.5, 0.7

    def density(x: Tensor) -> Tensor:
        return normal_density(x, mean=mean, variance=sigma**2)

    def integral(power: int) -> Tensor:
        return expectation_by_quadrature(lambda x: (x - mean) ** power, density, low=-10.0, high=13.0)

    x = torch.linspace(-40, 40, 201, dtype=torch.float64)
    library = Normal(*torch.tensor([mean, sigma], dtype=torch.float64))
    return all_of(
        mass=close(integral(0), 1.0, atol=1e-13),
        centred=close(integral(1), 0.0, atol=1e-13),
        variance=close(integral(2), sigma**2, atol=1e-13),
        peak=close(density(torch.tensor(mean, dtype=torch.float64)), 1 / (sigma * sqrt(2 * pi)), rtol=1e-14),
        library=close(normal_log_density(x, mean=mean, variance=sigma**2), library.log_prob(x), rtol=1e-13),
        no_negative_variance=raises(ValueError, lambda: normal_density(x, mean=0.0, variance=-1.0)),
    )


@claim("D1.4.5", "Z12.5")
def convex_functions_obey_jensen() -> Evidence:
    """Σ p_i φ(x_i) ≥ φ(Σ p_i x_i) for every convex φ; affine φ leave no gap, concave ones turn it (Diehl lem. 1.9)."""
    slopes, heights, root = normals(6, 3), normals(6, seed=1), normals(3, 3, seed=2)
    convex: dict[str, PointFunction] = {
        "max of affine": lambda x: (x @ slopes.T + heights).amax(-1),
        "quadratic": lambda x: (x @ root).square().sum(-1),
        "x log x": lambda x: torch.xlogy(x.abs(), x.abs()).sum(-1),
        "log-sum-exp": lambda x: x.logsumexp(-1),
    }
    laws = random_distributions(100, 5)
    clouds = normals(100, 5, 3, seed=3).exp()  # positive, for x log x

    def gaps(function: PointFunction) -> Tensor:
        return torch.stack([jensen(function, x, p).gap for x, p in zip(clouds, laws, strict=True)])

    constant = clouds[:1, :1].expand(1, 5, 3)[0]
    return all_of(
        convex=at_least(torch.stack([gaps(function) for function in convex.values()]), -1e-12),
        affine=close(gaps(lambda x: x @ slopes[0] + 2), 0.0, atol=1e-12),
        concave=at_most(gaps(lambda x: x.log().sum(-1)), 1e-12),
        constant=close(jensen(convex["quadratic"], constant, laws[0]).gap, 0.0, atol=1e-12),
    )


@claim("Z12.5")
def the_gap_of_the_square_is_the_variance() -> Evidence:
    """For φ(x) = x² the two sides of Jensen's inequality differ by Var X exactly (Zhao sec. 12)."""
    values, laws = normals(200, 6), random_distributions(200, 6)
    pairs = list(zip(values, laws, strict=True))
    gaps = torch.stack([jensen(torch.square, x, p).gap for x, p in pairs])
    return close(gaps, torch.stack([variance(x, p) for x, p in pairs]), atol=1e-13)


@erratum("D1.4.5", printed="weight 1 − p_n of the merged point", right="weight 1 − p_{n+1}")
def merging_points_proves_jensen() -> Correction:
    """The induction splits off the last of n+1 points; what is left weighs 1 − p_{n+1} (Diehl lem. 1.9)."""
    x, p = normals(6).exp(), random_distributions(1, 6)[0]
    earlier = jensen(torch.square, x[:-1], p[:-1] / p[:-1].sum())
    whole = jensen(torch.square, x, p)
    sums = jensen_by_merging(torch.square, x, p)
    last = p[-1] * x[-1].square()
    return Correction(
        printed=close((1 - p[-2]) * earlier.mean_of + last, whole.mean_of, rtol=1e-6),
        corrected=all_of(
            weights=close((1 - p[-1]) * earlier.mean_of + last, whole.mean_of, rtol=1e-12),
            no_merge_raises=at_most(sums.diff(), 0.0),
            from_the_right_side=close(sums[0], whole.mean_of, rtol=1e-12),
            to_the_left=close(sums[-1], whole.of_mean, rtol=1e-12),
        ),
    )


@claim("Z12.6")
def averaging_over_causes_bounds_the_surprise() -> Evidence:
    """E_Y[−log P(X|Y)] ≥ −log P(X) on a mixture of two bells; equal where the bells meet, at x = ½ (Zhao sec. 12)."""
    prior = torch.tensor([0.3, 0.7], dtype=torch.float64)
    means = torch.tensor([-1.0, 2.0], dtype=torch.float64)
    x = torch.tensor([0.0, 3.0, 0.5], dtype=torch.float64)
    grid = torch.linspace(-6, 7, 400, dtype=torch.float64)
    seen = latent_bound(normal_log_density(x[:, None], mean=means, variance=1.0), prior)
    all_along = latent_bound(normal_log_density(grid[:, None], mean=means, variance=1.0), prior)
    joint = (normal_log_density(grid[:, None], mean=means, variance=1.0) + prior.log()).softmax(-1)
    return all_of(
        bounds=close(seen.bound, torch.tensor([2.4689, 3.6689, 2.0439]), atol=1e-4),
        surprises=close(seen.surprise, torch.tensor([2.2038, 1.7754, 2.0439]), atol=1e-4),
        tight_where_bells_meet=close(seen.bound[2], seen.surprise[2], atol=1e-14),
        everywhere=at_least(all_along.bound, all_along.surprise),
        gap_is_divergence_from_the_posterior=close(
            all_along.bound - all_along.surprise, kl_divergence(prior, joint), atol=1e-12
        ),
        tight_for_the_posterior_as_guess=close(
            (joint * (joint / prior).log() - joint * normal_log_density(grid[:, None], mean=means, variance=1.0)).sum(
                -1
            ),
            all_along.surprise,
            atol=1e-12,
        ),
    )
