"""Claims about the evidence lower bound, on tables and in a linear Gaussian model (book sec. 6.1)."""

import torch
from torch import Tensor
from torch.distributions import Normal
from torch.distributions import kl_divergence as library_divergence

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.probability.distributions.seeded_samples import random_distributions
from parnassus.probability.divergences.gaussian_kl import diagonal_gaussian_kl
from parnassus.probability.inference.discrete_latent_model import (
    DiscreteLatentModel,
    ElboTerms,
    kl_to_joint,
    random_latent_model,
)

STATES, OBSERVATIONS = 4, 40


def random_posterior(seed: int = 2) -> Tensor:
    return random_distributions(OBSERVATIONS, STATES, seed=seed)


def model_and_terms() -> tuple[DiscreteLatentModel, Tensor, ElboTerms]:
    model, q = random_latent_model(STATES, OBSERVATIONS), random_posterior()
    return model, q, model.terms(q)


@claim("B6.1-7", "B6.1-8", "D6.0.6")
def the_divergence_to_the_joint_has_two_decompositions() -> Evidence:
    """KL(q ‖ p(x,z)) is the posterior gap minus log p(x), and also the negative ELBO (book eqs. 6.6-6.7)."""
    model, q, terms = model_and_terms()
    direct = kl_to_joint(q, model.joint)
    return all_of(
        joint=close(model.joint.sum(0), model.prior, atol=1e-14),
        evidence=close(model.evidence, model.prior @ model.likelihood, atol=1e-15),
        posterior=close(model.posterior, model.joint / model.evidence[:, None], atol=1e-15),
        through_the_posterior=close(terms.gap, direct + model.evidence.log(), atol=1e-13),
        prior_and_likelihood=close(direct, terms.kl_to_prior - terms.log_likelihood, atol=1e-13),
        negative_elbo=close(-direct, terms.elbo, atol=1e-13),
    )


@erratum("B6.1-9", printed="KL(q, p(x,z)) = E_q[log p(x,z)] − H(q)", right="KL(q, p(x,z)) = −E_q[log p(x,z)] − H(q)")
def the_expected_log_joint_enters_with_a_minus() -> Correction:
    """The first term of the second form is printed with the wrong sign (book eq. 6.8)."""
    model, q, terms = model_and_terms()
    direct = kl_to_joint(q, model.joint)
    return Correction(
        printed=close(direct, terms.log_joint - terms.entropy, atol=1e-6),
        corrected=close(direct, -terms.log_joint - terms.entropy, atol=1e-13),
    )


@erratum(
    "B6.1-12",
    printed="log p(x) = KL(q, p(z|x)) − E_q[log p(x,z)] + H(q)",
    right="log p(x) = KL(q, p(z|x)) + E_q[log p(x,z)] + H(q)",
)
def the_evidence_adds_the_mean_log_joint() -> Correction:
    """The wrong sign of eq. 6.8 propagates to the second form of the log-likelihood (book eq. 6.11)."""
    model, _, terms = model_and_terms()
    log_evidence = model.evidence.log()
    return Correction(
        printed=close(log_evidence, terms.gap - terms.log_joint + terms.entropy, atol=1e-6),
        corrected=close(log_evidence, terms.gap + terms.log_joint + terms.entropy, atol=1e-13),
    )


@claim("B6.1-12")
def the_log_evidence_is_the_elbo_plus_the_gap() -> Evidence:
    """For every q, log p(x) = KL(q ‖ p(z|x)) − KL(q ‖ p(z)) + E_q[log p(x|z)] (book eq. 6.10)."""
    model = random_latent_model(STATES, OBSERVATIONS)
    samples = [model.terms(random_posterior(seed)) for seed in range(20)]
    sums = torch.stack([terms.gap - terms.kl_to_prior + terms.log_likelihood for terms in samples])
    return close(sums, model.evidence.log().expand_as(sums), atol=1e-13)


@erratum(
    "B6.1-13", printed="the ELBO is an upper bound of log p(x)", right="the ELBO is a lower bound: ELBO ≤ log p(x)"
)
def the_elbo_is_a_lower_bound() -> Correction:
    """The preceding sentence calls it an upper bound; the formula itself is correct (book eq. 6.12)."""
    model, _, terms = model_and_terms()
    return Correction(
        printed=greater_equal(terms.elbo, model.evidence.log()), corrected=less_equal(terms.elbo, model.evidence.log())
    )


@claim("B6.1-13")
def the_elbo_is_tight_only_at_the_posterior() -> Evidence:
    """ELBO < log p(x) for 50 random q, equal at the posterior; near it the gap is quadratic (book eq. 6.12)."""
    model = random_latent_model(STATES, OBSERVATIONS)
    log_evidence = model.evidence.log()
    elbos = torch.stack([model.terms(random_posterior(seed)).elbo for seed in range(50)])
    direction = random_posterior() - 0.25
    perturbed = [(model.posterior.log() + step * direction).softmax(-1) for step in (0.0, 0.01, 0.02, 0.04)]
    gaps = torch.stack([log_evidence - model.terms(q).elbo for q in perturbed]).mean(1)
    return all_of(
        below=less_equal(elbos, log_evidence - 1e-4),
        tight_at_the_posterior=close(gaps[0], 0.0, atol=1e-14),
        quadratic_near_the_posterior=close(gaps[2:] / gaps[1:-1], 4.0, atol=0.05),
    )


@claim("B6.1-13")
def the_elbo_gap_of_a_linear_gaussian_model() -> Evidence:
    """For z ~ N(0, 1), x = wz + noise, log p(x) − ELBO = KL(q ‖ p(z|x)) for every normal q, in closed form."""
    w, s, x = torch.tensor([1.3, 0.6, 0.9], dtype=torch.float64)
    mean = torch.linspace(-2, 2, 41, dtype=torch.float64)[:, None]
    std = torch.linspace(0.05, 2, 40, dtype=torch.float64)
    fit = Normal(x, s).log_prob(w * mean) - (w * std).square() / (2 * s.square())  # E over q of a quadratic
    prior = Normal(torch.zeros_like(w), torch.ones_like(w))
    elbo = fit - library_divergence(Normal(mean, std), prior)
    log_evidence = Normal(torch.zeros_like(w), (w.square() + s.square()).sqrt()).log_prob(x)
    precision = 1 + (w / s).square()
    posterior = Normal(w * x / s.square() / precision, precision.rsqrt())
    at_posterior = Normal(x, s).log_prob(w * posterior.mean) - (w * posterior.stddev).square() / (2 * s.square())
    return all_of(
        gap=close(log_evidence - elbo, library_divergence(Normal(mean, std), posterior), atol=1e-11),
        divergence=close(
            diagonal_gaussian_kl(
                mean[..., None], std.square()[:, None], posterior.mean.view(1, 1), posterior.variance.view(1, 1)
            ),
            log_evidence - elbo,
            atol=1e-11,
        ),
        below=less_equal(elbo, log_evidence),
        tight=close(at_posterior - library_divergence(posterior, prior), log_evidence, atol=1e-14),
    )
