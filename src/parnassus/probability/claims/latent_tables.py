"""Claims about the evidence bound, on tables and in a linear Gaussian model (book sec. 6.1)."""

import torch
from torch import Tensor
from torch.distributions import Normal
from torch.distributions import kl_divergence as library_divergence

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.probability.claims.distances import random_distributions
from parnassus.probability.latent_tables import BoundTerms, LatentTable, divergence_from_joint

CAUSES, OBSERVATIONS = 4, 40


def random_table(seed: int = 0) -> LatentTable:
    prior = random_distributions(1, CAUSES, seed=seed)[0]
    return LatentTable(prior, random_distributions(CAUSES, OBSERVATIONS, seed=seed + 1))


def random_guess(seed: int = 2) -> Tensor:
    return random_distributions(OBSERVATIONS, CAUSES, seed=seed)


def table_and_terms() -> tuple[LatentTable, Tensor, BoundTerms]:
    model, guess = random_table(), random_guess()
    return model, guess, model.terms(guess)


@claim("B6.1-7", "B6.1-8", "D6.0.6")
def divergence_from_the_joint_splits_twice() -> Evidence:
    """Against p(x,z): the divergence from the posterior less log p(x), or code cost less fit (book eqs. 6.6-6.7)."""
    model, guess, terms = table_and_terms()
    direct = divergence_from_joint(guess, model.joint)
    return all_of(
        joint=close(model.joint.sum(0), model.prior, atol=1e-14),
        evidence=close(model.evidence, model.prior @ model.likelihood, atol=1e-15),
        posterior=close(model.posterior, model.joint / model.evidence[:, None], atol=1e-15),
        through_the_posterior=close(terms.gap, direct + model.evidence.log(), atol=1e-13),
        prior_and_likelihood=close(direct, terms.divergence_from_prior - terms.log_likelihood, atol=1e-13),
        it_is_minus_the_bound=close(-direct, terms.elbo, atol=1e-13),
    )


@erratum("B6.1-9", printed="KL(q, p(x,z)) = E_q[log p(x,z)] − H(q)", right="KL(q, p(x,z)) = −E_q[log p(x,z)] − H(q)")
def the_energy_enters_with_a_minus() -> Correction:
    """The first term of the second form has the wrong sign in print (book eq. 6.8)."""
    model, guess, terms = table_and_terms()
    direct = divergence_from_joint(guess, model.joint)
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
    """The wrong sign of eq. 6.8 comes along into the second form of the log-likelihood (book eq. 6.11)."""
    model, _, terms = table_and_terms()
    log_evidence = model.evidence.log()
    return Correction(
        printed=close(log_evidence, terms.gap - terms.log_joint + terms.entropy, atol=1e-6),
        corrected=close(log_evidence, terms.gap + terms.log_joint + terms.entropy, atol=1e-13),
    )


@claim("B6.1-12")
def the_evidence_is_a_gap_and_a_bound() -> Evidence:
    """For every guess q, log p(x) = KL(q ‖ p(z|x)) − KL(q ‖ p(z)) + E_q[log p(x|z)] (book eq. 6.10)."""
    model = random_table()
    every = [model.terms(random_guess(seed)) for seed in range(20)]
    sums = torch.stack([terms.gap - terms.divergence_from_prior + terms.log_likelihood for terms in every])
    return close(sums, model.evidence.log().expand_as(sums), atol=1e-13)


@erratum("B6.1-13", printed="the ELBO is an upper bound of log p(x)", right="a lower bound: ELBO ≤ log p(x)")
def the_bound_lies_below() -> Correction:
    """The sentence before it calls the inequality an upper bound; the formula has it right (book eq. 6.12)."""
    model, _, terms = table_and_terms()
    return Correction(
        printed=at_least(terms.elbo, model.evidence.log()), corrected=at_most(terms.elbo, model.evidence.log())
    )


@claim("B6.1-13")
def the_bound_is_tight_at_the_posterior_alone() -> Evidence:
    """ELBO < log p(x) for 50 guesses, equal at the posterior; a small step s from it costs ∝ s² (book eq. 6.12)."""
    model = random_table()
    log_evidence = model.evidence.log()
    elbos = torch.stack([model.terms(random_guess(seed)).elbo for seed in range(50)])
    direction = random_guess() - 0.25
    bent = [(model.posterior.log() + step * direction).softmax(-1) for step in (0.0, 0.01, 0.02, 0.04)]
    gaps = torch.stack([log_evidence - model.terms(guess).elbo for guess in bent]).mean(1)
    return all_of(
        below=at_most(elbos, log_evidence - 1e-4),
        touches_at_the_posterior=close(gaps[0], 0.0, atol=1e-14),
        and_leaves_it_quadratically=close(gaps[2:] / gaps[1:-1], 4.0, atol=0.05),
    )


@claim("B6.1-13")
def the_bound_of_a_linear_gaussian_model() -> Evidence:
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
        below=at_most(elbo, log_evidence),
        tight=close(at_posterior - library_divergence(posterior, prior), log_evidence, atol=1e-14),
    )
