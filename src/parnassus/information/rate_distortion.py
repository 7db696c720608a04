"""Rate, distortion and mutual information of a stochastic encoder on finite tables (book sec. 6.4).

Data p(x), an encoder q(z|x) with one row per x, and a model of prior p(z) and decoder p(x|z). All values are in nats.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.distributions.simplex import check_distribution
from parnassus.probability.divergences.entropy import entropy
from parnassus.probability.divergences.kl_divergence import kl_divergence
from parnassus.probability.divergences.mutual_information import mutual_information
from parnassus.probability.inference.discrete_latent_model import DiscreteLatentModel, check_posterior_table


class RateDistortionTerms(NamedTuple):
    """Rate, distortion and information of a code; −E[ELBO] = D + R, R = I + KL(q(z) ‖ p(z)), D ≥ H(X) − I.

    >>> terms = [torch.tensor(value) for value in (1.0, 1.5, 2.0, 0.5, 3.0)]
    >>> RateDistortionTerms(*terms).negative_elbo.item()
    3.5
    """

    information: Tensor  # I(X, Z) under the encoder
    rate: Tensor  # R = E_x KL(q(z|x) ‖ p(z))
    distortion: Tensor  # D, the expected negative log-likelihood of the decoder
    marginal_kl: Tensor  # KL(q(z) ‖ p(z)) of the aggregated posterior from the prior
    data_entropy: Tensor  # H(X)

    @property
    def negative_elbo(self) -> Tensor:
        """−E[ELBO] = D + R (book eq. 6.21)."""
        return self.distortion + self.rate


def encoder_joint(
    data: Float[Tensor, " observations"], encoder: Float[Tensor, "rows codes"]
) -> Float[Tensor, "rows codes"]:
    """p_e(x, z) = p(x) q(z|x) (book sec. 6.4)."""
    check_distribution(data, "the data p(x)")
    check_distribution(encoder, "the encoder q(z|x)")
    if len(data) != len(encoder):
        raise ValueError(
            f"the encoder must have one row per observation; got {len(encoder)} rows, {len(data)} observations"
        )
    return data[:, None] * encoder


def aggregated_posterior(
    data: Float[Tensor, " observations"], encoder: Float[Tensor, "observations codes"]
) -> Float[Tensor, " codes"]:
    """q(z) = Σ_x p(x) q(z|x), the aggregated posterior (book sec. 6.4)."""
    return encoder_joint(data, encoder).sum(0)


def rate_distortion_terms(
    data: Float[Tensor, " observations"], encoder: Float[Tensor, "observations codes"], model: DiscreteLatentModel
) -> RateDistortionTerms:
    """Information, rate and distortion of an encoder and a model of prior and decoder (book eqs. 6.17-6.21).

        I(X, Z) = E_x KL(q(z|x) ‖ q(z))                                           (book eq. 6.18)
        D       = −E_x E_{q(z|x)}[log p(x|z)]                                     (book eq. 6.19)
        R       = E_x KL(q(z|x) ‖ p(z)) = I(X, Z) + KL(q(z) ‖ p(z)) ≥ I(X, Z)     (book eqs. 6.20 and 6.22)

    The last equality holds because log q(z|x)/p(z) = log q(z|x)/q(z) + log q(z)/p(z), where q(z) = Σ_x p(x) q(z|x).
    """
    check_posterior_table(encoder, model)
    joint = encoder_joint(data, encoder)
    return RateDistortionTerms(
        information=mutual_information(joint),
        rate=data @ kl_divergence(encoder, model.prior),
        distortion=-torch.xlogy(joint, model.likelihood.T).sum(),
        marginal_kl=kl_divergence(joint.sum(0), model.prior),
        data_entropy=entropy(data),
    )


def bayes_decoder(
    data: Float[Tensor, " observations"], encoder: Float[Tensor, "observations codes"]
) -> Float[Tensor, "codes observations"]:
    """p(x|z) = p(x) q(z|x) / q(z): the decoder of minimum distortion, D = H(X) − I(X, Z) (book sec. 6.4).

    A code of probability 0 decodes to the data distribution.
    """
    joint = encoder_joint(data, encoder)
    marginal = joint.sum(0)[:, None]
    return torch.where(marginal > 0, joint.T / torch.where(marginal > 0, marginal, 1), data)


class LabelInformation(NamedTuple):
    """Information about a label Y in the Markov chain Y – X – Z.

    >>> one = torch.tensor(1.0)
    >>> LabelInformation(code_information=0.75 * one, data_information=one, lost=0.25 * one).lost.item()
    0.25
    """

    code_information: Tensor  # I(Z, Y)
    data_information: Tensor  # I(X, Y)
    lost: Tensor  # E KL(p(y|x) ‖ p(y|z)) = I(X, Y) − I(Z, Y)


def label_information(
    data: Float[Tensor, " observations"],
    encoder: Float[Tensor, "observations codes"],
    labels: Float[Tensor, "observations labels"],
) -> LabelInformation:
    """Information about a label that is lost by replacing the data by the code (book eqs. 6.23-6.24).

        p(y|z) = Σ_x p(x|z) p(y|x),   E_{x,z} KL(p(y|x) ‖ p(y|z)) = I(X, Y) − I(Z, Y) ≥ 0

    `labels` holds p(y|x), one row per observation.
    """
    joint, label_joint = encoder_joint(data, encoder), encoder_joint(data, labels)
    predicted = bayes_decoder(data, encoder) @ labels
    divergence = kl_divergence(labels[:, None], predicted[None])
    lost = (joint * torch.where(joint > 0, divergence, 0)).sum()  # the divergence may be +∞ where p(x, z) = 0
    return LabelInformation(mutual_information(encoder.T @ label_joint), mutual_information(label_joint), lost)
