"""Claims about Monte Carlo estimates of the evidence (Diehl sec. 6)."""

from functools import partial

import torch
from torch.distributions import Categorical, MultivariateNormal

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, rate
from parnassus.probability.claims.gaussian_mixture import three_gaussians
from parnassus.probability.distributions.seeded_samples import standard_normal
from parnassus.probability.inference.gaussian_mixture import GaussianMixture
from parnassus.probability.inference.importance_sampling import (
    collision_probability,
    effective_sample_size,
    evidence_by_importance_sampling,
    evidence_by_prior_sampling,
    evidence_from_weights,
    log_mean_exp,
)
from parnassus.probability.textbook.noisy_observation import (
    log_evidence,
    log_joint,
    log_likelihood,
    posterior,
    prior,
    relative_variance,
    typical_observation,
)


@claim("D6.0.9")
def prior_sampling_is_unbiased_but_its_logarithm_is_not() -> Evidence:
    """The mean of p(x|Z_m) is unbiased for p(x); its log has bias −½ of the relative variance (Diehl sec. 6)."""
    torch.manual_seed(0)
    x = torch.tensor([0.8, -0.3], dtype=torch.float64)
    draws, repeats = 50, 10_000
    log_weights = log_likelihood(x, prior(2).sample(torch.Size([repeats, draws])))
    estimates = log_mean_exp(log_weights)
    average = (estimates - log_evidence(x)).exp()
    theory = relative_variance(x) / draws
    return all_of(
        unbiased=less_equal((average.mean() - 1).abs(), 4 * average.std() / repeats**0.5),
        variance=close(average.var(), theory, rtol=0.05),
        log_is_biased_downwards=less_equal(estimates.mean(), log_evidence(x) - 4 * estimates.std() / repeats**0.5),
        by_half_the_variance=close(log_evidence(x) - estimates.mean(), theory / 2, rtol=0.2),
    )


@claim("D6.0.9")
def prior_sampling_degrades_with_the_dimension() -> Evidence:
    """At a typical x the relative variance grows by a constant factor per dimension of z (Diehl sec. 6)."""
    torch.manual_seed(0)
    points = [typical_observation(dim) for dim in range(2, 13, 2)]
    exact = torch.stack([relative_variance(x) for x in points])
    effective = [
        evidence_by_prior_sampling(partial(log_likelihood, x), prior(len(x)), 20_000).effective_sample_size
        for x in points
    ]
    factor = (1 + exact[-1]) / (1 + exact[-2])
    return all_of(
        factor_for_two_dimensions=close(factor, float((1 + exact[1]) / (1 + exact[0])), rtol=1e-9),
        grows=greater_equal(factor.sqrt(), 1.4),
        effective_sample_size=close(torch.stack(effective)[:3], 20_000 / (1 + exact[:3]), rtol=0.2),
        small_effective_sample_size=less_equal(effective[-1], 1_000.0),
    )


@claim("D6.0.10")
def the_collision_probability_is_the_fraction_of_useful_prior_samples() -> Evidence:
    """For separated components a fraction Σ φ_i² of prior samples is useful, 1/n for equal weights (Diehl ex. 6.5)."""
    torch.manual_seed(0)
    weights = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    separated = GaussianMixture(weights, 20 * three_gaussians().means, three_gaussians().covariances)
    component = torch.multinomial(weights, 20_000, replacement=True)
    x, samples = separated.sample_given(component), torch.multinomial(weights, 20_000, replacement=True)
    explained = (separated.log_joint(x) - separated.weights.log()).gather(1, samples[:, None])[
        :, 0
    ] > separated.log_prob(x) - 10
    equal = torch.full((16,), 1 / 16, dtype=torch.float64)
    uneven = torch.distributions.Dirichlet(torch.ones(16, dtype=torch.float64)).sample(torch.Size([200]))
    return all_of(
        probability=close(collision_probability(weights), 0.38, atol=1e-15),
        measured=close(explained.double().mean(), 0.38, atol=0.015),
        equal_weights=close(collision_probability(equal), 1 / 16, atol=1e-15),
        equal_weights_minimise=greater_equal(torch.stack([collision_probability(each) for each in uneven]), 1 / 16),
    )


@claim("D6.0.11")
def the_posterior_is_the_optimal_proposal() -> Evidence:
    """With q the posterior every weight equals p(x), for a mixture and a linear Gaussian model (Diehl sec. 6)."""
    torch.manual_seed(0)
    mixture, x = three_gaussians(), torch.tensor([[0.5, 0.5]], dtype=torch.float64)
    joint = mixture.log_joint(x)[0]
    exact = evidence_by_importance_sampling(lambda z: joint[z], Categorical(logits=joint), 100)
    observation = torch.tensor([0.8, -0.3], dtype=torch.float64)
    linear = evidence_by_importance_sampling(partial(log_joint, observation), posterior(observation), 100)
    return all_of(
        mixture=close(exact.log_evidence, mixture.log_prob(x)[0], atol=1e-13),
        linear=close(linear.log_evidence, log_evidence(observation), atol=1e-13),
        zero_variance=less_equal(torch.stack([exact.relative_standard_error, linear.relative_standard_error]), 1e-13),
        full_effective_sample_size=close(
            torch.stack([exact.effective_sample_size, linear.effective_sample_size]), 100.0, atol=1e-9
        ),
    )


@claim("D6.0.11")
def importance_sampling_is_unbiased() -> Evidence:
    """E_q[p(x, Z) / q(Z)] = p(x) if q > 0 where p(x, z) > 0, with error ∝ 1/√M (Diehl sec. 6)."""
    torch.manual_seed(0)
    x = torch.tensor([1.5, -1.0], dtype=torch.float64)
    proposal = MultivariateNormal(0.5 * x, 0.6 * torch.eye(2, dtype=torch.float64))
    counts = torch.tensor([20, 80, 320])
    errors, deviations = [], []
    for count in counts.tolist():
        z = proposal.sample(torch.Size([4_000, count]))
        estimate = log_mean_exp(log_joint(x, z) - proposal.log_prob(z))
        relative = (estimate - log_evidence(x)).exp()
        errors.append(relative.std())
        deviations.append((relative.mean() - 1).abs() / (relative.std() / 4_000**0.5))
    by_prior = relative_variance(x).sqrt() / counts.sqrt()
    return all_of(
        unbiased=less_equal(torch.stack(deviations), 4.0),
        rate_one_over_root_m=rate(counts.double(), torch.stack(errors), -0.5, atol=0.05),
        better_than_the_prior=less_equal(torch.stack(errors), 0.5 * by_prior),
    )


@claim("D6.0.11")
def a_proposal_must_cover_the_posterior() -> Evidence:
    """A q that is 0 on a component omits its part of p(x), which the weights do not indicate (Diehl sec. 6)."""
    torch.manual_seed(0)
    mixture, x = three_gaussians(), torch.tensor([[1.5, 0.5]], dtype=torch.float64)
    joint = mixture.log_joint(x)[0]
    incomplete = Categorical(logits=joint[:2])  # has probability 0 on the third component
    estimate = evidence_by_importance_sampling(lambda z: joint[z], incomplete, 1_000)
    return all_of(
        misses_the_third=close(estimate.log_evidence, joint[:2].logsumexp(0), atol=1e-12),
        too_low=less_equal(estimate.log_evidence, mixture.log_prob(x)[0] - 0.1),
        weights_without_variance=less_equal(estimate.relative_standard_error, 1e-12),
    )


@claim("D6.0.11")
def the_effective_sample_size_counts_equal_weights() -> Evidence:
    """(Σw)²/Σw² is the number k of equal nonzero weights, at most M, and scale-invariant (Diehl sec. 6)."""
    seven_nonzero = torch.where(torch.arange(50) < 7, 0.0, -torch.inf)
    uneven = standard_normal(50)
    standard_error = evidence_from_weights(uneven).relative_standard_error
    effective = effective_sample_size(uneven)
    return all_of(
        seven_nonzero_weights=close(effective_sample_size(seven_nonzero), 7.0, atol=1e-5),
        equal_weights=close(effective_sample_size(torch.full((50,), -2_000.0, dtype=torch.float64)), 50.0, atol=1e-9),
        scale_invariant=close(effective_sample_size(uneven - 1e3), effective, rtol=1e-9),
        relative_variance=close(standard_error.square(), (50 / effective - 1) / 49, rtol=1e-12),
        no_underflow=close(log_mean_exp(torch.full((3,), -1e5, dtype=torch.float64)), -1e5, rtol=1e-15),
    )
