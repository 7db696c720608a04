"""Claims about Bayes' theorem, expectations, the normal density and Jensen's inequality (Zhao secs. 2, 3 and 12)."""

from math import pi, sqrt

import torch
from torch import Tensor
from torch.distributions import Normal

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, raises, rate
from parnassus.probability.distributions.normal import normal_density, normal_log_density
from parnassus.probability.distributions.seeded_samples import random_distributions, standard_normal
from parnassus.probability.divergences.kl_divergence import kl_divergence
from parnassus.probability.expectations.expectation import (
    covariance,
    expectation,
    expectation_by_quadrature,
    expectation_by_sampling,
    variance,
)
from parnassus.probability.expectations.jensen_inequality import (
    PointFunction,
    jensen_inequality,
    jensen_merge_path,
    prior_evidence_bound,
)
from parnassus.probability.inference.bayes import bayes_theorem, posterior_table

VALUES = torch.tensor([0.0, 2.0, 10.0], dtype=torch.float64)
PROBABILITIES = torch.tensor([0.5, 0.4, 0.1], dtype=torch.float64)


@claim("Z2.6")
def bayes_theorem_recovers_the_joint_table() -> Evidence:
    """Posterior and evidence give the joint table; Bayes' rule, applied twice, recovers prior and likelihood."""
    prior, likelihood = random_distributions(1, 4)[0], random_distributions(4, 6, seed=1)
    posterior, evidence = posterior_table(prior, likelihood)
    back_likelihood, back_prior = posterior_table(evidence, posterior)
    single = [bayes_theorem(float(likelihood[k, 2]), float(prior[k]), float(evidence[2])) for k in range(4)]
    impossible = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    return all_of(
        joint=close(posterior * evidence[:, None], (prior[:, None] * likelihood).T, atol=1e-15),
        rows=close(posterior.sum(-1), 1.0, atol=1e-15),
        two_events=close(torch.tensor(single, dtype=torch.float64), posterior[2], atol=1e-15),
        recovered_prior=close(back_prior, prior, atol=1e-15),
        recovered_likelihood=close(back_likelihood, likelihood, atol=1e-15),
        rare_disease=close(bayes_theorem(1.0, 0.0015, 0.0015 + 0.01 * 0.9985), 0.1306, atol=1e-4),
        impossible=raises(ValueError, lambda: posterior_table(prior[:2] / prior[:2].sum(), impossible)),
        prior_zero_gives_posterior_zero=close(bayes_theorem(0.0, 0.0, 0.3), 0.0),  # P(B|A) is arbitrary where P(A) = 0
        impossible_event=raises(ValueError, lambda: bayes_theorem(0.5, 0.5, 0.0)),
    )


@claim("Z2.7")
def moments_of_a_discrete_distribution() -> Evidence:
    """Values 0, 2, 10 with probabilities ½, 0.4, 0.1 have mean 1.8 and Var = E[X²] − E[X]² = 8.36; vᵀΣv = Var(vᵀX)."""
    values, p, v = standard_normal(8, 3), random_distributions(1, 8)[0], standard_normal(3, seed=1)
    second_moment = expectation(VALUES.square(), PROBABILITIES)
    return all_of(
        mean=close(expectation(VALUES, PROBABILITIES), 1.8, atol=1e-15),
        variance=close(variance(VALUES, PROBABILITIES), 8.36, atol=1e-14),
        by_moments=close(variance(VALUES, PROBABILITIES), second_moment - 1.8**2, atol=1e-14),
        linear=close(expectation(values @ v, p), expectation(values, p) @ v, atol=1e-15),
        along_a_direction=close(v @ covariance(values, p) @ v, variance(values @ v, p), atol=1e-14),
        positive_semidefinite=greater_equal(torch.linalg.eigvalsh(covariance(values, p)), 0.0),
    )


@claim("Z2.7")
def quadrature_and_sampling_agree() -> Evidence:
    """E[cos X] = e^(−½) for a standard normal X, by quadrature up to rounding, by n samples with error ∝ 1/√n."""
    exact = torch.tensor(-0.5, dtype=torch.float64).exp()
    integral = expectation_by_quadrature(
        torch.cos, lambda x: normal_density(x, mean=0.0, variance=1.0), low=-12.0, high=12.0
    )
    counts = torch.tensor([100, 400, 1_600, 6_400], dtype=torch.float64)
    errors = torch.stack(
        [
            (standard_normal(400, int(count), seed=int(count)).cos().mean(1) - exact).square().mean().sqrt()
            for count in counts
        ]
    )
    estimate = expectation_by_sampling(torch.cos, standard_normal(100_000))
    return all_of(
        quadrature=close(integral, exact, atol=1e-14),
        within_four_standard_errors=less_equal((estimate.mean - exact).abs(), 4 * estimate.standard_error),
        rate_one_over_root_n=rate(counts, errors, -0.5, atol=0.05),
    )


@claim("Z3.6")
def the_normal_density_has_mass_mean_and_variance() -> Evidence:
    """The normal density has mass 1, mean μ and variance σ², and equals torch's, which takes σ (Zhao sec. 3)."""
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
        negative_variance_is_rejected=raises(ValueError, lambda: normal_density(x, mean=0.0, variance=-1.0)),
    )


@claim("D1.4.5", "Z12.5")
def convex_functions_satisfy_jensen() -> Evidence:
    """Σ p_i φ(x_i) ≥ φ(Σ p_i x_i) for convex φ; = for affine, ≤ for concave φ (Diehl lem. 1.9)."""
    gradients, offsets, root = standard_normal(6, 3), standard_normal(6, seed=1), standard_normal(3, 3, seed=2)
    convex: dict[str, PointFunction] = {
        "max of affine": lambda x: (x @ gradients.T + offsets).amax(-1),
        "quadratic": lambda x: (x @ root).square().sum(-1),
        "x log x": lambda x: torch.xlogy(x.abs(), x.abs()).sum(-1),
        "log-sum-exp": lambda x: x.logsumexp(-1),
    }
    weights = random_distributions(100, 5)
    clouds = standard_normal(100, 5, 3, seed=3).exp()  # positive, for x log x

    def gaps(function: PointFunction) -> Tensor:
        return torch.stack([jensen_inequality(function, x, p).gap for x, p in zip(clouds, weights, strict=True)])

    constant = clouds[:1, :1].expand(1, 5, 3)[0]
    return all_of(
        convex=greater_equal(torch.stack([gaps(function) for function in convex.values()]), -1e-12),
        affine=close(gaps(lambda x: x @ gradients[0] + 2), 0.0, atol=1e-12),
        concave=less_equal(gaps(lambda x: x.log().sum(-1)), 1e-12),
        constant=close(jensen_inequality(convex["quadratic"], constant, weights[0]).gap, 0.0, atol=1e-12),
    )


@claim("Z12.5")
def the_jensen_gap_of_the_square_is_the_variance() -> Evidence:
    """For φ(x) = x² the two sides of Jensen's inequality differ by Var X exactly (Zhao sec. 12)."""
    values, weights = standard_normal(200, 6), random_distributions(200, 6)
    pairs = list(zip(values, weights, strict=True))
    gaps = torch.stack([jensen_inequality(torch.square, x, p).gap for x, p in pairs])
    return close(gaps, torch.stack([variance(x, p) for x, p in pairs]), atol=1e-13)


@erratum("D1.4.5", printed="weight 1 − p_n of the merged point", right="weight 1 − p_{n+1}")
def merging_points_proves_jensen() -> Correction:
    """The induction separates the last of n+1 points; the others have weight 1 − p_{n+1} (Diehl lem. 1.9)."""
    x, p = standard_normal(6).exp(), random_distributions(1, 6)[0]
    earlier = jensen_inequality(torch.square, x[:-1], p[:-1] / p[:-1].sum())
    full = jensen_inequality(torch.square, x, p)
    sums = jensen_merge_path(torch.square, x, p)
    last = p[-1] * x[-1].square()
    return Correction(
        printed=close((1 - p[-2]) * earlier.mean_of_function + last, full.mean_of_function, rtol=1e-6),
        corrected=all_of(
            weights=close((1 - p[-1]) * earlier.mean_of_function + last, full.mean_of_function, rtol=1e-12),
            no_merge_increases=less_equal(sums.diff(), 0.0),
            starts_at_the_right_side=close(sums[0], full.mean_of_function, rtol=1e-12),
            ends_at_the_left_side=close(sums[-1], full.function_of_mean, rtol=1e-12),
        ),
    )


@claim("Z12.6")
def averaging_over_latent_states_bounds_the_negative_log_likelihood() -> Evidence:
    """E_Y[−log P(X|Y)] ≥ −log P(X) for two Gaussians; equal where they intersect, x = ½ (Zhao sec. 12)."""
    prior = torch.tensor([0.3, 0.7], dtype=torch.float64)
    means = torch.tensor([-1.0, 2.0], dtype=torch.float64)
    x = torch.tensor([0.0, 3.0, 0.5], dtype=torch.float64)
    grid = torch.linspace(-6, 7, 400, dtype=torch.float64)
    at_x = prior_evidence_bound(normal_log_density(x[:, None], mean=means, variance=1.0), prior)
    on_grid = prior_evidence_bound(normal_log_density(grid[:, None], mean=means, variance=1.0), prior)
    joint = (normal_log_density(grid[:, None], mean=means, variance=1.0) + prior.log()).softmax(-1)
    return all_of(
        bounds=close(at_x.bound, torch.tensor([2.4689, 3.6689, 2.0439]), atol=1e-4),
        negative_log_likelihoods=close(at_x.nll, torch.tensor([2.2038, 1.7754, 2.0439]), atol=1e-4),
        tight_at_the_intersection=close(at_x.bound[2], at_x.nll[2], atol=1e-14),
        everywhere=greater_equal(on_grid.bound, on_grid.nll),
        gap_is_divergence_from_the_posterior=close(
            on_grid.bound - on_grid.nll, kl_divergence(prior, joint), atol=1e-12
        ),
        tight_for_the_posterior=close(
            (joint * (joint / prior).log() - joint * normal_log_density(grid[:, None], mean=means, variance=1.0)).sum(
                -1
            ),
            on_grid.nll,
            atol=1e-12,
        ),
    )
