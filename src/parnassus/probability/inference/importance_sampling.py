"""Monte Carlo estimates of the evidence p(x): prior sampling and importance sampling (Diehl sec. 6).

All weights are logarithms, which avoids underflow; samples lie along the last axis by default.
"""

from collections.abc import Callable
from math import log
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

from parnassus.probability.distributions.simplex import check_distribution

LogDensity: TypeAlias = Callable[[Tensor], Tensor]
"""A function that maps samples of z along the first axis to one log-density per sample (and batch entry)."""


def log_mean_exp(log_values: Float[Tensor, "..."], dim: int = -1) -> Float[Tensor, "..."]:
    """The logarithm of a mean, log (1/M) Σ_m exp(a_m) along `dim`, without overflow (Diehl sec. 6)."""
    if log_values.shape[dim] == 0:
        raise ValueError(f"axis dim must not be empty; got dim={dim}, shape {tuple(log_values.shape)}")
    return log_values.logsumexp(dim) - log(log_values.shape[dim])


def effective_sample_size(log_weights: Float[Tensor, "..."], dim: int = -1) -> Float[Tensor, "..."]:
    """(Σ_m w_m)² / Σ_m w_m², between 1 and the number of weights (Kish 1965).

    It is 0 where every weight is 0.
    """
    largest = log_weights.detach().amax(dim, keepdim=True)
    weights = (log_weights - torch.where(largest > -torch.inf, largest, 0)).exp()  # relative to the largest
    squares = weights.square().sum(dim)
    return torch.where(squares > 0, weights.sum(dim).square() / torch.where(squares > 0, squares, 1), 0)


class EvidenceEstimate(NamedTuple):
    """An estimate of log p(x) with its first-order error.

    s² = (M/(M−1)) (1/ESS − 1/M)     the variance of log p̂ to first order, s = `relative_standard_error`
    bias ≈ −s² / 2                   of log p̂, which is negative by Jensen's inequality
    """

    log_evidence: Tensor  # log (1/M) Σ w_m; unbiased before the logarithm, biased downwards after it
    relative_standard_error: Tensor  # of the estimate of p(x)
    effective_sample_size: Tensor  # 1 … M
    draws: int

    @property
    def nll(self) -> float:
        """The mean of −log p̂(x) over a batch, in nats."""
        return -float(self.log_evidence.mean())

    @property
    def nll_error(self) -> float:
        """The standard error of `nll` due to the finite number of samples (not of rows)."""
        return float(self.relative_standard_error.square().sum().sqrt()) / self.relative_standard_error.numel()

    @property
    def nll_bias(self) -> float:
        """The bias of `nll` to first order: half the mean of the squared relative standard errors."""
        return float(self.relative_standard_error.square().mean()) / 2

    @property
    def warning(self) -> str:
        """A warning if the effective sample size is below ten or one per cent of the samples; else empty."""
        smallest = float(self.effective_sample_size.min())
        if smallest >= max(10.0, self.draws / 100):
            return ""
        return (
            f"the effective sample size is {smallest:.3g} of {self.draws} draws, so the standard error is unreliable; "
            "use a proposal closer to the posterior, or more draws"
        )


def evidence_from_weights(log_weights: Float[Tensor, "*batch draws"]) -> EvidenceEstimate:
    """The estimate log (1/M) Σ_m w_m of log p(x) from log w_m = log p(x, z_m) − log q(z_m), with its error.

    Where every weight is 0 the estimate is −∞, its relative standard error +∞ and its effective sample size 0.
    """
    draws = log_weights.shape[-1]
    if draws < 2:
        raise ValueError(f"a standard error needs at least two draws; got {draws}")
    if bool((log_weights.isnan() | (log_weights == torch.inf)).any()):
        raise ValueError(
            "log-weights must be finite or −∞; some are NaN or +∞ (is the proposal density 0 at its own samples?)"
        )
    log_evidence = log_mean_exp(log_weights)
    relative = (log_weights - log_evidence[..., None]).exp()  # w_m / p̂(x)
    relative_standard_error = torch.where(log_evidence > -torch.inf, relative.std(-1) / draws**0.5, torch.inf)
    return EvidenceEstimate(log_evidence, relative_standard_error, effective_sample_size(log_weights), draws)


@torch.no_grad()
def evidence_by_prior_sampling(log_likelihood: LogDensity, prior: Distribution, draws: int) -> EvidenceEstimate:
    """Estimate log p(x) with samples from the prior (Diehl sec. 6).

        log p(x) ≈ log (1/M) Σ_m p(x|Z_m),   Z_m ~ p(z)

    Most samples have a small likelihood; the relative variance grows exponentially with the dimension of z.
    """
    return evidence_from_weights(_draws_last(log_likelihood(prior.sample(torch.Size([draws])))))


@torch.no_grad()
def evidence_by_importance_sampling(log_joint: LogDensity, proposal: Distribution, draws: int) -> EvidenceEstimate:
    """Estimate log p(x) with weighted samples from a proposal q (Diehl sec. 6).

        p(x) = E_{Z~q}[p(x|Z) p(Z) / q(Z)],   q(z) = 0 only where p(x, z) = 0

    With q the posterior every weight equals p(x). If q is 0 where p(x, z) > 0, that part of the evidence is omitted,
    which the weights do not indicate.
    """
    z = proposal.sample(torch.Size([draws]))
    log_proposal = proposal.log_prob(z)
    log_target = log_joint(z)
    extra = log_target.dim() - log_proposal.dim()  # axes of observations that share the samples
    return evidence_from_weights(_draws_last(log_target - log_proposal.reshape(log_proposal.shape + (1,) * extra)))


def collision_probability(weights: Float[Tensor, " components"]) -> Float[Tensor, ""]:
    """Σ_i φ_i², the probability that a prior sample is the component that generated x (Diehl ex. 6.5).

    For well-separated components it is the fraction of useful prior samples: 1/n for n equal weights.
    """
    check_distribution(weights, "weights")
    return weights.square().sum()


def _draws_last(log_weights: Tensor) -> Tensor:
    return log_weights.movedim(0, -1)
