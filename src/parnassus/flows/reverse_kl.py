"""Fitting a flow to an unnormalised density by the reverse KL divergence (book sec. 13.1)."""

from copy import deepcopy

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_at_least_one
from parnassus.flows.flow import Flow
from parnassus.probability.inference.importance_sampling import EvidenceEstimate, LogDensity, evidence_from_weights


def reverse_kl(flow: Flow, log_target: LogDensity, count: int) -> Float[Tensor, ""]:
    """KL(p_x ‖ q) − log Z from samples of the flow, for a target q = q̃ / Z (book eqs. 13.10-13.14).

        E_{p_z}[log p_z(z; ψ) − log |det J_T(z; φ)| − log q̃(T(z; φ))]

    Only the base is sampled, and Z may be unknown. As KL ≥ 0, the negative loss is a lower bound of log Z in
    expectation, tight for p_x = q. A base with parameters ψ is sampled by `rsample`, so that gradients reach ψ.
    """
    x, log_prob = _sample(flow, count)
    return (log_prob - log_target(x)).mean()


def path_gradient_reverse_kl(flow: Flow, log_target: LogDensity, count: int) -> Float[Tensor, ""]:
    """`reverse_kl` with the path gradient, which is zero for every sample if p_x = q (Roeder et al. 2017).

        ∇_θ log p_x(x; θ) at fixed x has mean zero and is omitted; the gradient through x = T(z; θ) remains

    Near the optimum its variance is much smaller than that of the plain gradient. It costs one inverse of the flow.
    """
    x, _ = _sample(flow, count)
    frozen = deepcopy(flow).requires_grad_(requires_grad=False)
    return (frozen.log_prob(x) - log_target(x)).mean()


@torch.no_grad()
def estimate_evidence(flow: Flow, log_target: LogDensity, count: int) -> EvidenceEstimate:
    """An importance-sampling estimate of log Z with the flow as proposal.

        log Ẑ = log (1/N) Σ_n w_n,   w_n = q̃(x_n) / p_x(x_n),   x_n ~ p_x

    In expectation it lies between the negative reverse KL loss and log Z. Regions of the target that the flow does not
    cover are missed.
    """
    x, log_prob = _sample(flow, count)
    return evidence_from_weights(log_target(x) - log_prob)


def _sample(flow: Flow, count: int) -> tuple[Tensor, Tensor]:
    check_at_least_one(count=count)
    return flow.sample_with_log_prob(count)
