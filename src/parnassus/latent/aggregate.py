"""The codes of all data together: the aggregated posterior, and how much the encoder says (book sec. 6.4)."""

from dataclasses import dataclass
from math import log, pi

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.latent.vae import reparametrise, standard_normal_kl


@dataclass(frozen=True)
class CodeInformation:
    """Where the rate of an encoder goes, in nats: R = I(X, Z) + KL(q(z) ‖ p(z)) (book eqs. 6.17-6.22).

    The rate is exact, the two others are means over draws: their sum meets it up to the error of that mean.
    """

    rate: float
    """R = E_x KL(q(z|x) ‖ p(z)), what codes cost."""
    information: float
    """I(X, Z) = E_x KL(q(z|x) ‖ q(z)), what codes say of their image; never above log n for n rows."""
    prior_gap: float
    """KL(q(z) ‖ p(z)), what is paid for a prior that is not the law of the codes."""


def log_aggregate(
    z: Float[Tensor, "count latent"], mean: Float[Tensor, "rows latent"], log_variance: Float[Tensor, "rows latent"]
) -> Float[Tensor, " count"]:
    """The logarithm of q(z) = (1/n) Σ_i N(z; μ_i, diag σ_i²), the law of the codes of n rows (book sec. 6.4)."""
    if len(mean) == 0:
        raise ValueError("an aggregated posterior needs at least one row; got none")
    precision = (-log_variance).exp()
    constant = (log_variance + mean.square() * precision).sum(1) + mean.shape[1] * log(2 * pi)
    parts = [  # Σ_j (z − μ)²/σ² as products, so that no tensor has codes × rows × coordinates
        (part @ (mean * precision).mT - part.square() @ precision.mT / 2 - constant / 2).logsumexp(1)
        for part in z.split(1_000)
    ]
    return torch.cat(parts) - log(len(mean))


@torch.no_grad()
def code_information(
    mean: Float[Tensor, "rows latent"], log_variance: Float[Tensor, "rows latent"], *, draws: int = 4
) -> CodeInformation:
    """Rate, information and prior gap of an encoder on the rows it was given, by `draws` codes a row.

        I(X, Z) = E [log q(z|x) − log q(z)]                                      (book eq. 6.18)
        KL(q(z) ‖ p(z)) = E [log q(z) − log p(z)]                                (book eq. 6.22)

    All in float64. Rows are taken for the whole world: a code that tells n rows apart says log n nats, however many
    images it could tell apart.
    """
    if draws < 1:
        raise ValueError(f"a mean needs at least one draw a row; got draws={draws}")
    mean, log_variance = mean.double(), log_variance.double()
    means, log_variances = mean.repeat(draws, 1), log_variance.repeat(draws, 1)
    z = reparametrise(means, log_variances)
    own = _log_normal(z, means, log_variances)
    aggregated = log_aggregate(z, mean, log_variance)
    prior = _log_normal(z, torch.zeros_like(z), torch.zeros_like(z))
    rate = standard_normal_kl(mean, log_variance).mean()
    return CodeInformation(float(rate), float((own - aggregated).mean()), float((aggregated - prior).mean()))


def rate_by_unit(
    mean: Float[Tensor, "rows latent"], log_variance: Float[Tensor, "rows latent"]
) -> Float[Tensor, " latent"]:
    """The mean nats that each coordinate of the code costs; they add up to the rate (book eq. 6.20)."""
    return standard_normal_kl(mean[..., None], log_variance[..., None]).mean(0)


def active_units(mean: Float[Tensor, "rows latent"], *, least: float = 0.01) -> Bool[Tensor, " latent"]:
    """The coordinates whose mean μ_j(x) moves with x: variance over the rows above `least` (Burda et al. 2016).

    The others have collapsed: their posterior is the prior whatever the image, and the decoder ignores them.
    """
    return mean.var(0) > least


def second_moments(
    mean: Float[Tensor, "rows latent"], log_variance: Float[Tensor, "rows latent"]
) -> Float[Tensor, " latent"]:
    """The mean of μ_j² + σ_j² over the rows: 1 in each coordinate where training has come to rest (book sec. 5.2).

    A factor on z_j can be taken back by the decoder's first layer, so the distortion does not care, and the rate is
    least at 1.
    """
    return (mean.square() + log_variance.exp()).mean(0)


def _log_normal(z: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    return -((z - mean).square() / log_variance.exp() + log_variance + log(2 * pi)).sum(1) / 2
