"""The evidence p(x) of a latent-variable model from draws: by the prior, by importance sampling (Diehl sec. 6).

All weights are logarithms, so that nothing underflows; draws lie along the last axis unless told otherwise.
"""

from collections.abc import Callable
from math import log
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

from parnassus.probability.simplex import require_distribution

LogDensity: TypeAlias = Callable[[Tensor], Tensor]
"""Draws of z along the first axis in, a log-density for each draw (and each of a batch) out."""


def log_mean_exp(log_values: Float[Tensor, "..."], dim: int = -1) -> Float[Tensor, "..."]:
    """The logarithm of a mean, log (1/M) Σ_m exp(a_m) along `dim`, without overflow (Diehl sec. 6)."""
    if log_values.shape[dim] == 0:
        raise ValueError(f"a mean needs at least one value; axis {dim} of shape {tuple(log_values.shape)} is empty")
    return log_values.logsumexp(dim) - log(log_values.shape[dim])


def effective_sample_size(log_weights: Float[Tensor, "..."], dim: int = -1) -> Float[Tensor, "..."]:
    """(Σ_m w_m)² / Σ_m w_m²: how many equal weights would spread as these do, from 1 to their number (Kish 1965).

    Where every weight is 0, so is the size.
    """
    total = log_weights.logsumexp(dim)
    return torch.where(total > -torch.inf, (2 * total - (2 * log_weights).logsumexp(dim)).exp(), 0)


class EvidenceEstimate(NamedTuple):
    """An estimate of log p(x), and how far to trust it.

    spread² = (M/(M−1)) (1/ESS − 1/M)     the variance of log p̂, to first order
    bias ≈ −spread² / 2                   E[log p̂] lies below log p by Jensen's inequality
    """

    log_evidence: Tensor  # log (1/M) Σ w_m; unbiased before the logarithm, too low on average after it
    spread: Tensor  # standard error of the estimate of p(x), relative to p(x)
    effective: Tensor  # effective sample size, 1 … M
    draws: int

    @property
    def nll(self) -> float:
        """The mean of −log p̂(x) over a batch, in nats."""
        return -float(self.log_evidence.mean())

    @property
    def nll_error(self) -> float:
        """The standard error of `nll` that comes from the finite number of draws (not from that of rows)."""
        return float(self.spread.square().sum().sqrt()) / self.spread.numel()

    @property
    def nll_bias(self) -> float:
        """How much lower the true value may be, to first order: half the mean squared spread."""
        return float(self.spread.square().mean()) / 2

    @property
    def caution(self) -> str:
        """A warning where fewer than one draw in a hundred, or fewer than ten, carry the estimate; else empty."""
        least = float(self.effective.min())
        if least >= max(10.0, self.draws / 100):
            return ""
        return (
            f"the estimate rests on about {least:.3g} of {self.draws} draws, so its spread cannot be trusted either; "
            "take a proposal nearer to the posterior, or more draws"
        )


def evidence_from_weights(log_weights: Float[Tensor, "*batch draws"]) -> EvidenceEstimate:
    """An estimate log (1/M) Σ_m w_m of log p(x) from log w_m = log p(x, z_m) − log q(z_m), with what to think of it.

    Where every weight is 0 the estimate is −∞, its spread +∞ and no draw counts.
    """
    draws = log_weights.shape[-1]
    if draws < 2:
        raise ValueError(f"an estimate with a spread needs at least two draws; got {draws}")
    if bool((log_weights.isnan() | (log_weights == torch.inf)).any()):
        raise ValueError("log-weights must be finite or −∞; some are NaN or +∞ (a proposal that is 0 where it drew?)")
    log_evidence = log_mean_exp(log_weights)
    relative = (log_weights - log_evidence[..., None]).exp()  # w_m / p̂(x)
    spread = torch.where(log_evidence > -torch.inf, relative.std(-1) / draws**0.5, torch.inf)
    return EvidenceEstimate(log_evidence, spread, effective_sample_size(log_weights), draws)


@torch.no_grad()
def evidence_by_prior(log_likelihood: LogDensity, prior: Distribution, draws: int) -> EvidenceEstimate:
    """An estimate of log p(x) with draws of the prior (Diehl sec. 6).

        log p(x) ≈ log (1/M) Σ_m p(x|Z_m),   Z_m ~ p(z)

    Most draws explain x badly; the fewer hit, the larger the spread, and it grows exponentially with the size of z.
    """
    return evidence_from_weights(_draws_last(log_likelihood(prior.sample(torch.Size([draws])))))


@torch.no_grad()
def evidence_by_importance(log_joint: LogDensity, proposal: Distribution, draws: int) -> EvidenceEstimate:
    """Draw where it matters and reweight (Diehl sec. 6).

        p(x) = E_{Z~q}[p(x|Z) p(Z) / q(Z)],   q(z) = 0 only where p(x, z) = 0

    With q the posterior every weight equals p(x), and one draw is enough. A q that leaves out a part where p(x, z) > 0
    loses that part, and no weight shows it.
    """
    z = proposal.sample(torch.Size([draws]))
    log_proposal = proposal.log_prob(z)
    log_target = log_joint(z)
    extra = log_target.dim() - log_proposal.dim()  # a batch of observations that share the draws
    return evidence_from_weights(_draws_last(log_target - log_proposal.reshape(log_proposal.shape + (1,) * extra)))


def share_of_hits(weights: Float[Tensor, " components"]) -> Float[Tensor, ""]:
    """Σ_i φ_i²: the chance that a draw of the prior is the component that x came from (Diehl ex. 6.5).

    For components far apart this is the share of prior draws of any use: 1/n for n equal ones.
    """
    require_distribution(weights, "weights")
    return weights.square().sum()


def _draws_last(log_weights: Tensor) -> Tensor:
    return log_weights.movedim(0, -1)
