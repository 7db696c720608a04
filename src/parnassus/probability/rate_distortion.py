"""What a code keeps, costs and loses: information, rate and distortion on finite tables (book sec. 6.4).

Data p(x), an encoder q(z|x) with a row an x, and a model of prior p(z) and decoder p(x|z). All numbers are nats.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.divergences import entropy, kl_divergence
from parnassus.probability.information import mutual_information
from parnassus.probability.latent_tables import LatentTable, require_guess
from parnassus.probability.simplex import require_distribution


class CodeNumbers(NamedTuple):
    """The five numbers of a code; −E[ELBO] = D + R, R = I + KL(q(z) ‖ p(z)), D ≥ H(X) − I."""

    information: Tensor  # I(X, Z) that the encoder keeps
    rate: Tensor  # R, what the code costs with the prior as price list
    distortion: Tensor  # D, the decoder's mean surprise at the data
    mismatch: Tensor  # KL(q(z) ‖ p(z)): the codes in use against the prior
    data_entropy: Tensor  # H(X)

    @property
    def negative_elbo(self) -> Tensor:
        """−E[ELBO] = D + R (book eq. 6.21)."""
        return self.distortion + self.rate


def encoder_joint(
    data: Float[Tensor, " observations"], encoder: Float[Tensor, "rows causes"]
) -> Float[Tensor, "rows causes"]:
    """p_e(x, z) = p(x) q(z|x) (book sec. 6.4)."""
    require_distribution(data, "the data p(x)")
    require_distribution(encoder, "the encoder q(z|x)")
    if len(data) != len(encoder):
        raise ValueError(f"the encoder needs a row for every observation; got {len(encoder)} rows, {len(data)} of them")
    return data[:, None] * encoder


def aggregate(
    data: Float[Tensor, " observations"], encoder: Float[Tensor, "observations causes"]
) -> Float[Tensor, " causes"]:
    """q(z) = Σ_x p(x) q(z|x): how often each code is used (book sec. 6.4)."""
    return encoder_joint(data, encoder).sum(0)


def code_numbers(
    data: Float[Tensor, " observations"], encoder: Float[Tensor, "observations causes"], model: LatentTable
) -> CodeNumbers:
    """Information, rate and distortion of an encoder with a model of prior and decoder (book eqs. 6.17-6.21).

        I(X, Z) = E_x KL(q(z|x) ‖ q(z))                                           (book eq. 6.18)
        D       = −E_x E_{q(z|x)}[log p(x|z)]                                     (book eq. 6.19)
        R       = E_x KL(q(z|x) ‖ p(z)) = I(X, Z) + KL(q(z) ‖ p(z)) ≥ I(X, Z)     (book eqs. 6.20 and 6.22)

    The last because log q(z|x)/p(z) = log q(z|x)/q(z) + log q(z)/p(z), where q(z) = Σ_x p(x) q(z|x).
    """
    require_guess(encoder, model)
    joint = encoder_joint(data, encoder)
    return CodeNumbers(
        information=mutual_information(joint),
        rate=data @ kl_divergence(encoder, model.prior),
        distortion=-torch.xlogy(joint, model.likelihood.T).sum(),
        mismatch=kl_divergence(joint.sum(0), model.prior),
        data_entropy=entropy(data),
    )


def bayes_decoder(
    data: Float[Tensor, " observations"], encoder: Float[Tensor, "observations causes"]
) -> Float[Tensor, "causes observations"]:
    """p(x|z) = p(x) q(z|x) / q(z): the decoder of least distortion, D = H(X) − I(X, Z) (book sec. 6.4).

    A code that is never used decodes to the data's own law.
    """
    joint = encoder_joint(data, encoder)
    used = joint.sum(0)[:, None]
    return torch.where(used > 0, joint.T / torch.where(used > 0, used, 1), data)


class PredictionNumbers(NamedTuple):
    """What a code tells of a label Y that the data decide, in the chain Y – X – Z."""

    kept: Tensor  # I(Z, Y)
    known: Tensor  # I(X, Y)
    lost: Tensor  # E KL(p(y|x) ‖ p(y|z)) = I(X, Y) − I(Z, Y)


def prediction_numbers(
    data: Float[Tensor, " observations"],
    encoder: Float[Tensor, "observations causes"],
    labels: Float[Tensor, "observations labels"],
) -> PredictionNumbers:
    """What is lost of a label by reading the code in place of the data (book eqs. 6.23-6.24).

        p(y|z) = Σ_x p(x|z) p(y|x),   E_{x,z} KL(p(y|x) ‖ p(y|z)) = I(X, Y) − I(Z, Y) ≥ 0

    `labels` has p(y|x), a row an observation.
    """
    joint, told = encoder_joint(data, encoder), encoder_joint(data, labels)
    guessed = bayes_decoder(data, encoder) @ labels
    divergence = kl_divergence(labels[:, None], guessed[None])
    lost = (joint * torch.where(joint > 0, divergence, 0)).sum()  # +∞ may stand where x never has the code z
    return PredictionNumbers(kept=mutual_information(encoder.T @ told), known=mutual_information(told), lost=lost)
