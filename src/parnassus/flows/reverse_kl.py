"""Fitting a flow to a density that can be evaluated and not sampled, by the reverse KL divergence (book sec. 13.1)."""

from copy import deepcopy

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.flows.flow import Flow
from parnassus.probability.importance import EvidenceEstimate, LogDensity, evidence_from_weights


def reverse_kl(flow: Flow, log_target: LogDensity, count: int) -> Float[Tensor, ""]:
    """KL(p_x ‖ q) − log Z from `count` draws of the flow, for a target q = q̃ / Z (book eqs. 13.10-13.14).

        E_{p_z}[log p_z(z; ψ) − log |det J_T(z; φ)| − log q̃(T(z; φ))]

    Only noise is drawn, and Z may be unknown. As KL ≥ 0, minus the loss lies below log Z on average, and reaches it
    where p_x = q. A base with parameters ψ must be drawn by `rsample`: z moves with ψ, and its gradient counts.
    """
    x, log_prob = _draw(flow, count)
    return (log_prob - log_target(x)).mean()


def reverse_kl_by_path(flow: Flow, log_target: LogDensity, count: int) -> Float[Tensor, ""]:
    """The same number with a gradient that vanishes, draw by draw, where p_x = q (Roeder et al. 2017).

        ∇_θ log p_x(x; θ) has mean zero at fixed x; here it is left out, and what remains goes by the path x = T(z; θ)

    Near the end of a fit the plain gradient is all noise, this one none. It costs an inverse of the flow.
    """
    x, _ = _draw(flow, count)
    frozen = deepcopy(flow).requires_grad_(requires_grad=False)
    return (frozen.log_prob(x) - log_target(x)).mean()


@torch.no_grad()
def weigh_target(flow: Flow, log_target: LogDensity, count: int) -> EvidenceEstimate:
    """An estimate of log Z from draws of the flow, and how many of them count.

        log Ẑ = log (1/N) Σ_n w_n,   w_n = q̃(x_n) / p_x(x_n),   x_n ~ p_x

    It lies between minus the reverse KL loss and log Z on average: the weights put right what the fit missed, except
    where the flow never goes.
    """
    x, log_prob = _draw(flow, count)
    return evidence_from_weights(log_target(x) - log_prob)


def _draw(flow: Flow, count: int) -> tuple[Tensor, Tensor]:
    if count < 1:
        raise ValueError(f"an expectation needs at least one draw; got count={count}")
    return flow.sample_with_log_prob(count)
