"""Claims about rate, distortion and mutual information of an encoder (book sec. 6.4)."""

from math import log

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.information.rate_distortion import (
    RateDistortionTerms,
    aggregated_posterior,
    bayes_decoder,
    encoder_joint,
    label_information,
    rate_distortion_terms,
)
from parnassus.probability import random_distributions, random_latent_model
from parnassus.probability.divergences.entropy import entropy
from parnassus.probability.divergences.kl_divergence import kl_divergence
from parnassus.probability.divergences.mutual_information import mutual_information
from parnassus.probability.inference.discrete_latent_model import DiscreteLatentModel


def random_rate_distortion(count: int = 20) -> list[RateDistortionTerms]:
    """Terms for random data, encoders, priors and decoders, sampled independently."""
    return [
        rate_distortion_terms(
            random_distributions(1, OBSERVATIONS, seed=3 * seed)[0],
            random_encoder(seed + 1),
            random_latent_model(CODES, OBSERVATIONS, seed=seed),
        )
        for seed in range(count)
    ]


def stack_terms(codes: list[RateDistortionTerms]) -> RateDistortionTerms:
    return RateDistortionTerms(*(torch.stack(values) for values in zip(*codes, strict=True)))


CODES, OBSERVATIONS = 4, 40


def random_encoder(seed: int = 2) -> Tensor:
    """The distributions of the code given each observation."""
    return random_distributions(OBSERVATIONS, CODES, seed=seed)


@claim("B6.4-1")
def encoder_information_is_at_most_the_entropy() -> Evidence:
    """E KL(q(z|x) ‖ q(z)) is the mutual information of p(x) q(z|x), at most log n for n points (book eq. 6.18)."""
    data, encoder = random_distributions(1, OBSERVATIONS)[0], random_encoder()
    joint, marginal = encoder_joint(data, encoder), aggregated_posterior(data, encoder)
    uniform = torch.full((6,), 1 / 6, dtype=torch.float64)
    information = torch.stack(
        [mutual_information(encoder_joint(uniform, random_distributions(6, 50, seed=s))) for s in range(50)]
    )
    disjoint = torch.eye(6, dtype=torch.float64).repeat_interleave(2, 1) / 2  # every point has its own codes
    return all_of(
        two_forms=close(mutual_information(joint), data @ kl_divergence(encoder, marginal), atol=1e-14),
        marginal=close(marginal, joint.sum(0), atol=1e-15),
        at_most_log_n=less_equal(information, log(6)),
        attained_by_disjoint_codes=close(mutual_information(encoder_joint(uniform, disjoint)), log(6), atol=1e-14),
        zero_for_a_constant_encoder=close(
            mutual_information(encoder_joint(data, marginal.expand(OBSERVATIONS, -1))), 0.0, atol=1e-14
        ),
    )


@claim("B6.4-2", "B6.4-3", "B6.4-4")
def the_negative_elbo_is_distortion_plus_rate() -> Evidence:
    """−E[ELBO] = D + R, as the average of the ELBO over observations (book eq. 6.21)."""
    data, encoder, model = (
        random_distributions(1, OBSERVATIONS, seed=9)[0],
        random_encoder(),
        random_latent_model(CODES, OBSERVATIONS),
    )
    values, terms = rate_distortion_terms(data, encoder, model), model.terms(encoder)
    nll = -torch.stack([q @ likelihood.log() for q, likelihood in zip(encoder, model.likelihood.T, strict=True)])
    return all_of(
        distortion=close(values.distortion, data @ nll, atol=1e-13),
        rate=close(values.rate, data @ terms.kl_to_prior, atol=1e-14),
        sum_of_both=close(values.negative_elbo, -(data @ terms.elbo), atol=1e-13),
        above_the_entropy=greater_equal(values.negative_elbo, values.data_entropy),
    )


@erratum(
    "B6.4-5", "B6.4-11", printed="−E[ELBO] ≤ I(X,Z) + D", right="−E[ELBO] = I(X,Z) + D + KL(q(z), p(z)) ≥ I(X,Z) + D"
)
def the_rate_bounds_information_from_above() -> Correction:
    """As R ≥ I, the negative ELBO is at least I + D; the summary states the reverse (book eq. 6.22)."""
    codes = stack_terms(random_rate_distortion())
    lower_bound = codes.information + codes.distortion
    return Correction(
        printed=less_equal(codes.negative_elbo, lower_bound),
        corrected=all_of(
            above_information_plus_distortion=greater_equal(codes.negative_elbo, lower_bound),
            difference_is_the_marginal_kl=close(codes.rate - codes.information, codes.marginal_kl, atol=1e-13),
        ),
    )


@claim("B6.4-5", "B6.4-11")
def rate_is_information_if_the_prior_is_the_aggregated_posterior() -> Evidence:
    """With p(z) = q(z) the negative ELBO is I + D; for any other prior it is larger (book sec. 6.4)."""
    data, encoder, model = (
        random_distributions(1, OBSERVATIONS)[0],
        random_encoder(),
        random_latent_model(CODES, OBSERVATIONS),
    )
    marginal = aggregated_posterior(data, encoder)
    best = rate_distortion_terms(data, encoder, DiscreteLatentModel(marginal, model.likelihood))
    priors = random_distributions(50, CODES, seed=4)
    others = stack_terms(
        [rate_distortion_terms(data, encoder, DiscreteLatentModel(prior, model.likelihood)) for prior in priors]
    )
    return all_of(
        marginal_kl_is_zero=close(best.marginal_kl, 0.0, atol=1e-15),
        equal=close(best.negative_elbo, best.information + best.distortion, atol=1e-13),
        larger_otherwise=greater_equal(
            others.negative_elbo, best.negative_elbo + kl_divergence(marginal, priors) - 1e-12
        ),
    )


@claim("B6.4-6")
def information_plus_distortion_is_at_least_the_entropy() -> Evidence:
    """I + D ≥ H(X), and I + D = H(X) only for the Bayes decoder (book sec. 6.4)."""
    codes = stack_terms(random_rate_distortion())
    data, encoder = random_distributions(1, OBSERVATIONS)[0], random_encoder()
    inverse = bayes_decoder(data, encoder)
    decoders = [
        torch.lerp(inverse, random_distributions(CODES, OBSERVATIONS, seed=5), weight) for weight in (0.0, 0.1, 0.3)
    ]
    marginal = aggregated_posterior(data, encoder)
    by_decoder = stack_terms(
        [rate_distortion_terms(data, encoder, DiscreteLatentModel(marginal, decoder)) for decoder in decoders]
    )
    sums = by_decoder.information + by_decoder.distortion
    return all_of(
        lower_bound=greater_equal(codes.information + codes.distortion, codes.data_entropy),
        attained=close(sums[0], entropy(data), atol=1e-13),
        larger_for_other_decoders=greater_equal(sums.diff(), 1e-3),
    )


@erratum(
    "B6.4-6",
    printed="with p_e(x,z) = p_d(x,z) one minimises I + D",
    right="then I + D = H(X) for every encoder: nothing to minimise",
)
def equal_joints_leave_nothing_to_minimise() -> Correction:
    """With equal joint distributions of encoder and decoder the sum to be minimised is constant (book sec. 6.4)."""
    data = random_distributions(1, OBSERVATIONS)[0]
    codes = stack_terms(
        [
            rate_distortion_terms(
                data, encoder, DiscreteLatentModel(aggregated_posterior(data, encoder), bayes_decoder(data, encoder))
            )  # p_d = p_e
            for encoder in map(random_encoder, range(30))
        ]
    )
    sums = codes.information + codes.distortion
    return Correction(
        printed=greater_equal(sums.max() - sums.min(), 1e-6),
        corrected=close(sums, entropy(data).expand(30), atol=1e-12),
    )


@claim("B6.4-9")
def lost_label_information_is_a_divergence() -> Evidence:
    """In the chain Y – X – Z, E KL(p(y|x) ‖ p(y|z)) = I(X,Y) − I(Z,Y) ≥ 0 (book eqs. 6.23-6.24)."""
    datasets = [random_distributions(1, OBSERVATIONS, seed=seed)[0] for seed in range(20)]
    encoders = [random_encoder(seed + 1) for seed in range(20)]
    labels = random_distributions(OBSERVATIONS, 3, seed=2)
    pairs = list(zip(datasets, encoders, strict=True))
    information = [label_information(data, encoder, labels) for data, encoder in pairs]
    of_code, of_data, lost = (torch.stack(values) for values in zip(*information, strict=True))
    codes = stack_terms(
        [rate_distortion_terms(data, encoder, random_latent_model(CODES, OBSERVATIONS)) for data, encoder in pairs]
    )
    gamma = torch.tensor([[0.1], [1.0], [10.0]], dtype=torch.float64)
    copied = label_information(datasets[0], torch.eye(OBSERVATIONS, dtype=torch.float64), labels)
    return all_of(
        lost=close(lost, of_data - of_code, atol=1e-13),
        positive=greater_equal(lost, 1e-3),
        zero_for_an_identity_code=close(copied.lost, 0.0, atol=1e-13),
        bound=greater_equal(codes.negative_elbo + gamma * lost, codes.information + codes.distortion - gamma * of_code),
    )
