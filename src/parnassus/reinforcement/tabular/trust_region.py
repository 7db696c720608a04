"""Trust region policy optimisation of a tabular softmax policy, exactly (book sec. 18.5).

With the occupancy d and the advantages A of the old policy,

    J(π') = J(π) + Σ_s d_{π'}(s) Σ_a π'(a|s) A(s, a)         exactly (Kakade and Langford 2002)
    L(π') = J(π) + Σ_s d_π(s)   Σ_a π'(a|s) A(s, a)         the surrogate, with the old policy's occupancy
    J(π') ≥ L(π') − 4εγ/(1 − γ)² max_s TV(π, π')²,  ε = max |A|        (Schulman et al. 2015, thm. 1)
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_positive
from parnassus.optim.optimisers.conjugate_gradient import conjugate_gradient
from parnassus.probability import kl_divergence
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.policy_gradient import expected_return, policy_gradient, softmax_policy


@dataclass(frozen=True)
class TrustRegionStep:
    """The new logits, the gain of the surrogate, the KL divergence and the number of backtracks."""

    logits: Float[Tensor, "states actions"]
    gain: float
    kl: float
    backtracks: int


def surrogate_return(
    process: MarkovDecisionProcess,
    old: Float[Tensor, "states actions"],
    new: Float[Tensor, "states actions"],
    start: Float[Tensor, " states"],
) -> Float[Tensor, ""]:
    """L(π'), which has the value and the gradient of J at π' = π."""
    advantages = torch.where(process.allowed, process.advantages(old), 0)
    return expected_return(process, old, start) + process.occupancy(old, start) @ (new * advantages).sum(-1)


def improvement_lower_bound(
    process: MarkovDecisionProcess,
    old: Float[Tensor, "states actions"],
    new: Float[Tensor, "states actions"],
    start: Float[Tensor, " states"],
) -> Float[Tensor, ""]:
    """A lower bound of the new policy's return (Schulman et al. 2015, thm. 1)."""
    if process.gamma == 1:
        raise ValueError("the discount must be below 1; got gamma=1")
    largest = torch.where(process.allowed, process.advantages(old), 0).abs().max()
    total_variation = (new - old).abs().sum(-1).max() / 2
    slack = 4 * largest * process.gamma / (1 - process.gamma) ** 2 * total_variation.square()
    return surrogate_return(process, old, new, start) - slack


def occupancy_weighted_kl(
    process: MarkovDecisionProcess,
    old: Float[Tensor, "states actions"],
    new: Float[Tensor, "states actions"],
    start: Float[Tensor, " states"],
) -> Float[Tensor, ""]:
    """KL(π_old ‖ π_new), averaged over the old policy's occupancy."""
    visits = process.occupancy(old, start)
    return (visits / visits.sum()) @ kl_divergence(old, new)


def fisher_product(
    policy: Float[Tensor, "states actions"],
    visits: Float[Tensor, " states"],
    direction: Float[Tensor, "states actions"],
) -> Float[Tensor, "states actions"]:
    """F x with the Fisher matrix F = Σ_s d(s) (diag π(·|s) − π(·|s) π(·|s)ᵀ), the Hessian of the mean KL.

    F A^π = ∇J for the unnormalised d: the natural gradient of a tabular softmax policy is the advantage (Kakade 2001).
    """
    return visits[:, None] * policy * (direction - (policy * direction).sum(-1, keepdim=True))


def trust_region_step(
    process: MarkovDecisionProcess,
    logits: Float[Tensor, "states actions"],
    start: Float[Tensor, " states"],
    *,
    target_kl: float,
    max_backtracks: int = 20,
) -> TrustRegionStep:
    """A TRPO step: along the natural gradient up to the KL limit, with backtracking.

        x = F⁻¹ ∇J,   θ' = θ + 2^{−j} √(2δ / xᵀFx) x   with the smallest j for which KL ≤ δ and L has increased

    θ is unchanged where there is no such j.
    """
    check_positive(target_kl=target_kl)
    old = softmax_policy(logits, process.allowed)
    visits = process.occupancy(old, start)
    frequency = visits / visits.sum()
    gradient = policy_gradient(process, old, start) / visits.sum()
    direction = conjugate_gradient(lambda x: fisher_product(old, frequency, x), gradient, max_steps=logits.numel()).x
    length = (2 * target_kl / (direction * gradient).sum().clamp(min=1e-300)).sqrt()
    before = surrogate_return(process, old, old, start)
    for backtrack in range(max_backtracks):
        candidate = logits + 0.5**backtrack * length * direction
        new = softmax_policy(candidate, process.allowed)
        gain, kl = surrogate_return(process, old, new, start) - before, occupancy_weighted_kl(process, old, new, start)
        if float(kl) <= target_kl and float(gain) > 0:
            return TrustRegionStep(candidate, float(gain), float(kl), backtrack)
    return TrustRegionStep(logits, 0.0, 0.0, max_backtracks)
