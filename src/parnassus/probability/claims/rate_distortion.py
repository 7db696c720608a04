"""Claims about rate, distortion and information of a code (book sec. 6.4)."""

from math import log

import torch

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.probability.claims.distances import random_distributions
from parnassus.probability.claims.latent_tables import CAUSES, OBSERVATIONS, random_guess, random_table
from parnassus.probability.divergences import entropy, kl_divergence
from parnassus.probability.information import mutual_information
from parnassus.probability.latent_tables import LatentTable
from parnassus.probability.rate_distortion import (
    CodeNumbers,
    aggregate,
    bayes_decoder,
    code_numbers,
    encoder_joint,
    prediction_numbers,
)


def random_codes(count: int = 20) -> list[CodeNumbers]:
    """Codes of random data by random encoders, with random priors and decoders that know nothing of one another."""
    return [
        code_numbers(
            random_distributions(1, OBSERVATIONS, seed=3 * seed)[0], random_guess(seed + 1), random_table(seed)
        )
        for seed in range(count)
    ]


def stacked(codes: list[CodeNumbers]) -> CodeNumbers:
    return CodeNumbers(*(torch.stack(numbers) for numbers in zip(*codes, strict=True)))


@claim("B6.4-1")
def the_encoder_keeps_at_most_what_there_is() -> Evidence:
    """E KL(q(z|x) ‖ q(z)) is the information in p(x) q(z|x), of n equal points at most log n (book eq. 6.18)."""
    data, encoder = random_distributions(1, OBSERVATIONS)[0], random_guess()
    joint, used = encoder_joint(data, encoder), aggregate(data, encoder)
    even = torch.full((6,), 1 / 6, dtype=torch.float64)
    kept = torch.stack(
        [mutual_information(encoder_joint(even, random_distributions(6, 50, seed=s))) for s in range(50)]
    )
    apart = torch.eye(6, dtype=torch.float64).repeat_interleave(2, 1) / 2  # no two points share a code
    return all_of(
        two_forms=close(mutual_information(joint), data @ kl_divergence(encoder, used), atol=1e-14),
        used=close(used, joint.sum(0), atol=1e-15),
        at_most_log_n=at_most(kept, log(6)),
        reached_by_codes_of_their_own=close(mutual_information(encoder_joint(even, apart)), log(6), atol=1e-14),
        nothing_kept=close(mutual_information(encoder_joint(data, used.expand(OBSERVATIONS, -1))), 0.0, atol=1e-14),
    )


@claim("B6.4-2", "B6.4-3", "B6.4-4")
def the_negative_bound_is_distortion_and_rate() -> Evidence:
    """−E[ELBO] = D + R, averaged over the data from the bound of each observation (book eq. 6.21)."""
    data, encoder, model = random_distributions(1, OBSERVATIONS, seed=9)[0], random_guess(), random_table()
    numbers, terms = code_numbers(data, encoder, model), model.terms(encoder)
    surprise = -torch.stack([q @ likelihood.log() for q, likelihood in zip(encoder, model.likelihood.T, strict=True)])
    return all_of(
        distortion=close(numbers.distortion, data @ surprise, atol=1e-13),
        rate=close(numbers.rate, data @ terms.divergence_from_prior, atol=1e-14),
        sum_of_both=close(numbers.negative_elbo, -(data @ terms.elbo), atol=1e-13),
        above_the_entropy=at_least(numbers.negative_elbo, numbers.data_entropy),
    )


@erratum(
    "B6.4-5", "B6.4-11", printed="−E[ELBO] ≤ I(X,Z) + D", right="−E[ELBO] = I(X,Z) + D + KL(q(z), p(z)) ≥ I(X,Z) + D"
)
def the_rate_bounds_information_from_above() -> Correction:
    """R ≥ I puts the negative ELBO above I + D; the summary line has it below (book eq. 6.22)."""
    codes = stacked(random_codes())
    below = codes.information + codes.distortion
    return Correction(
        printed=at_most(codes.negative_elbo, below),
        corrected=all_of(
            at_least=at_least(codes.negative_elbo, below),
            by_the_mismatch=close(codes.rate - codes.information, codes.mismatch, atol=1e-13),
        ),
    )


@claim("B6.4-5", "B6.4-11")
def rate_is_information_when_prior_and_codes_agree() -> Evidence:
    """With p(z) = q(z) the negative ELBO is I + D; with any other prior it is more (book sec. 6.4)."""
    data, encoder, model = random_distributions(1, OBSERVATIONS)[0], random_guess(), random_table()
    used = aggregate(data, encoder)
    best = code_numbers(data, encoder, LatentTable(used, model.likelihood))
    priors = random_distributions(50, CAUSES, seed=4)
    others = stacked([code_numbers(data, encoder, LatentTable(prior, model.likelihood)) for prior in priors])
    return all_of(
        no_mismatch=close(best.mismatch, 0.0, atol=1e-15),
        equal=close(best.negative_elbo, best.information + best.distortion, atol=1e-13),
        else_more=at_least(others.negative_elbo, best.negative_elbo + kl_divergence(used, priors) - 1e-12),
    )


@claim("B6.4-6")
def information_and_distortion_have_a_floor() -> Evidence:
    """I + D ≥ H(X), and I + D = H(X) when the decoder is the Bayes inverse of the encoder alone (book sec. 6.4)."""
    codes = stacked(random_codes())
    data, encoder = random_distributions(1, OBSERVATIONS)[0], random_guess()
    inverse = bayes_decoder(data, encoder)
    bent = [torch.lerp(inverse, random_distributions(CAUSES, OBSERVATIONS, seed=5), share) for share in (0.0, 0.1, 0.3)]
    used = aggregate(data, encoder)
    by_decoder = stacked([code_numbers(data, encoder, LatentTable(used, decoder)) for decoder in bent])
    sums = by_decoder.information + by_decoder.distortion
    return all_of(
        floor=at_least(codes.information + codes.distortion, codes.data_entropy),
        reached=close(sums[0], entropy(data), atol=1e-13),
        left_by_other_decoders=at_least(sums.diff(), 1e-3),
    )


@erratum(
    "B6.4-6",
    printed="with p_e(x,z) = p_d(x,z) one minimises I + D",
    right="then I + D = H(X) for every encoder: nothing to minimise",
)
def equal_joints_leave_nothing_to_minimise() -> Correction:
    """Setting the joints of encoder and decoder equal fixes the very sum that is to be minimised (book sec. 6.4)."""
    data = random_distributions(1, OBSERVATIONS)[0]
    codes = stacked(
        [
            code_numbers(
                data, encoder, LatentTable(aggregate(data, encoder), bayes_decoder(data, encoder))
            )  # p_d = p_e
            for encoder in map(random_guess, range(30))
        ]
    )
    every = codes.information + codes.distortion
    return Correction(
        printed=at_least(every.max() - every.min(), 1e-6), corrected=close(every, entropy(data).expand(30), atol=1e-12)
    )


@claim("B6.4-9")
def a_code_loses_what_it_does_not_tell_of_the_label() -> Evidence:
    """In the chain Y – X – Z, E KL(p(y|x) ‖ p(y|z)) = I(X,Y) − I(Z,Y) ≥ 0, whence the bound (book eqs. 6.23-6.24)."""
    laws = [random_distributions(1, OBSERVATIONS, seed=seed)[0] for seed in range(20)]
    guesses = [random_guess(seed + 1) for seed in range(20)]
    labels = random_distributions(OBSERVATIONS, 3, seed=2)
    pairs = list(zip(laws, guesses, strict=True))
    told = [prediction_numbers(data, encoder, labels) for data, encoder in pairs]
    kept, known, lost = (torch.stack(numbers) for numbers in zip(*told, strict=True))
    codes = stacked([code_numbers(data, encoder, random_table()) for data, encoder in pairs])
    gamma = torch.tensor([[0.1], [1.0], [10.0]], dtype=torch.float64)
    copied = prediction_numbers(laws[0], torch.eye(OBSERVATIONS, dtype=torch.float64), labels)
    return all_of(
        lost=close(lost, known - kept, atol=1e-13),
        something_is=at_least(lost, 1e-3),
        nothing_by_a_copy=close(copied.lost, 0.0, atol=1e-13),
        bound=at_least(codes.negative_elbo + gamma * lost, codes.information + codes.distortion - gamma * kept),
    )
