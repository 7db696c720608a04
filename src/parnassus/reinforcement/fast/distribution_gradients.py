"""Hand-written gradients of log-probability and entropy with respect to a network's outputs."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from parnassus.reinforcement.agents.action_distributions import ActionDistribution, Categorical


class DistributionGradients(NamedTuple):
    """∂L/∂ outputs (logits or mean), and for a Gaussian ∂L/∂log_std per state."""

    outputs: Float[Tensor, "learners rows actions"]
    log_std: Float[Tensor, "learners rows actions"] | None


def distribution_gradients(
    distribution: ActionDistribution,
    actions: Shaped[Tensor, "learners rows *action"],
    grad_log_prob: Float[Tensor, "learners rows"],
    grad_entropy: float = 0.0,
) -> DistributionGradients:
    """From ∂L/∂log π(a|s) and ∂L/∂H, the latter the same in every state.

    ∂log π(a)/∂logits = 1_a − π,              ∂H/∂logits = −π (log π + H)
    ∂log N(a)/∂mean = (a − mean)/σ²,          ∂log N(a)/∂log σ = (a − mean)²/σ² − 1,   ∂H/∂log σ = 1
    """
    weights = grad_log_prob.unsqueeze(-1)
    if isinstance(distribution, Categorical):
        probabilities = distribution.logits.softmax(-1)
        gradient = (probabilities * weights).neg_().scatter_add_(-1, actions.unsqueeze(-1), weights)
        if grad_entropy:
            log_probs = distribution.logits.log_softmax(-1)
            entropy = distribution.entropy().unsqueeze(-1)
            gradient.sub_(grad_entropy * probabilities * (log_probs + entropy))
        return DistributionGradients(gradient, None)
    inverse_std = torch.exp(-distribution.log_std)
    standardised = (actions - distribution.mean) * inverse_std
    grad_log_std = weights * (standardised.square() - 1) + grad_entropy
    return DistributionGradients(weights * standardised * inverse_std, grad_log_std)
