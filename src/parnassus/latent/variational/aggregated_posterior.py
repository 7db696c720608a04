"""Aggregated posterior q(z), mutual information of code and data, active units (book sec. 6.4)."""

from dataclasses import dataclass
from math import log, pi

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.errors import check_positive
from parnassus.latent.variational.reparametrisation import reparametrise, standard_normal_kl
from parnassus.latent.variational.vae import VAE
from parnassus.probability import normal_log_density

ACTIVE_RATE = 0.05
"""Rate in nats per image above which a coordinate of the code is considered active."""


@dataclass(frozen=True)
class CodeInformation:
    """The two parts of the rate of an encoder, in nats: R = I(X, Z) + KL(q(z) ‖ p(z)) (book eqs. 6.17-6.22).

    The rate is exact, the two parts are Monte Carlo estimates: they add up to it within sampling error.

    >>> CodeInformation(rate=2.0, information=1.5, prior_gap=0.5).information
    1.5
    """

    rate: float
    """R = E_x KL(q(z|x) ‖ p(z))."""
    information: float
    """I(X, Z) = E_x KL(q(z|x) ‖ q(z)), the mutual information; at most log n for n rows."""
    prior_gap: float
    """KL(q(z) ‖ p(z)), from the aggregated posterior to the prior."""


def log_aggregated_posterior(
    z: Float[Tensor, "count latent"], mean: Float[Tensor, "rows latent"], log_variance: Float[Tensor, "rows latent"]
) -> Float[Tensor, " count"]:
    """The log-density of the aggregated posterior q(z) = (1/n) Σ_i N(z; μ_i, diag σ_i²) of n rows (book sec. 6.4)."""
    if len(mean) == 0:
        raise ValueError("an aggregated posterior needs at least one row; got none")
    precision = (-log_variance).exp()
    constant = (log_variance + mean.square() * precision).sum(1) + mean.shape[1] * log(2 * pi)
    parts = [  # Σ_j (z − μ)²/σ² as matrix products, without a tensor of codes × rows × coordinates
        (part @ (mean * precision).mT - part.square() @ precision.mT / 2 - constant / 2).logsumexp(1)
        for part in z.split(1_000)
    ]
    return torch.cat(parts) - log(len(mean))


@torch.no_grad()
def code_information(
    mean: Float[Tensor, "rows latent"], log_variance: Float[Tensor, "rows latent"], *, num_draws: int = 4
) -> CodeInformation:
    """Rate, mutual information and prior gap of an encoder on these rows, from `num_draws` codes per row.

        I(X, Z) = E [log q(z|x) − log q(z)]                                      (book eq. 6.18)
        KL(q(z) ‖ p(z)) = E [log q(z) − log p(z)]                                (book eq. 6.22)

    All in float64. The rows are treated as the whole data distribution, so I(X, Z) saturates at log n nats.
    """
    check_positive(num_draws=num_draws)
    mean, log_variance = mean.double(), log_variance.double()
    means, log_variances = mean.repeat(num_draws, 1), log_variance.repeat(num_draws, 1)
    z = reparametrise(means, log_variances)
    posterior = normal_log_density(z, mean=means, variance=log_variances.exp()).sum(1)
    aggregated = log_aggregated_posterior(z, mean, log_variance)
    prior = normal_log_density(z, mean=0.0, variance=1.0).sum(1)
    rate = standard_normal_kl(mean, log_variance).mean()
    return CodeInformation(float(rate), float((posterior - aggregated).mean()), float((aggregated - prior).mean()))


def rate_per_unit(
    mean: Float[Tensor, "rows latent"], log_variance: Float[Tensor, "rows latent"]
) -> Float[Tensor, " latent"]:
    """The mean rate in nats of each coordinate of the code; their sum is the rate (book eq. 6.20)."""
    return standard_normal_kl(mean[..., None], log_variance[..., None]).mean(0)


@torch.no_grad()
def model_rate_per_unit(model: VAE, x: Float[Tensor, "rows *event"]) -> Float[Tensor, " latent"]:
    """`rate_per_unit` of the posteriors of a model, encoding 1,000 rows at a time."""
    mean, log_variance = (
        torch.cat(part) for part in zip(*(model.posterior_parameters(p) for p in x.split(1_000)), strict=True)
    )
    return rate_per_unit(mean, log_variance)


def active_units(mean: Float[Tensor, "rows latent"], *, min_variance: float = 0.01) -> Bool[Tensor, " latent"]:
    """The coordinates whose posterior mean μ_j(x) has a variance over the rows above a threshold (Burda et al. 2016).

    The others have collapsed: their posterior is the prior for every x, and the decoder ignores them.
    """
    return mean.var(0) > min_variance


def second_moments(
    mean: Float[Tensor, "rows latent"], log_variance: Float[Tensor, "rows latent"]
) -> Float[Tensor, " latent"]:
    """The mean of μ_j² + σ_j² over the rows: 1 in each coordinate of a trained VAE (book sec. 5.2).

    The first layer of the decoder can undo a rescaling of z_j, so the distortion does not depend on it, and the rate
    is minimal at 1.
    """
    return (mean.square() + log_variance.exp()).mean(0)
