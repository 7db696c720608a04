"""Claims about trust regions and clipped surrogates (book sec. 18.5)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.probability import standard_normal
from parnassus.reinforcement.agents.surrogate import clipped_surrogate, policy_ratio
from parnassus.reinforcement.claims.random_processes import random_process
from parnassus.reinforcement.tabular.policy_gradient import expected_return, policy_gradient, softmax_policy
from parnassus.reinforcement.tabular.trust_region import (
    fisher_product,
    improvement_lower_bound,
    occupancy_weighted_kl,
    surrogate_return,
    trust_region_step,
)
from parnassus.reinforcement.tabular.value_and_policy_iteration import policy_iteration

START = torch.full((5,), 0.2, dtype=torch.float64)


def random_logits(seed: int) -> Tensor:
    return standard_normal(5, 3, seed=seed)


@claim("B18.5-2")
def trust_region_steps_satisfy_the_constraint_and_improve() -> Evidence:
    """Each of 40 steps has KL ≤ δ and increases the surrogate; the return converges to its optimum (book sec. 18.5)."""
    process, target_kl = random_process(5, 3, seed=1), 0.02
    logits, returns, gains, kls = torch.zeros(5, 3, dtype=torch.float64), [], [], []
    for _ in range(40):
        returns.append(expected_return(process, softmax_policy(logits, process.allowed), START))
        step = trust_region_step(process, logits, START, target_kl=target_kl)
        logits = step.logits
        gains.append(step.gain)
        kls.append(step.kl)
    best = policy_iteration(process).values @ START
    return all_of(
        kl=less_equal(torch.tensor(kls), target_kl),
        surrogate_grows=greater_equal(torch.tensor(gains), 0.0),
        return_grows=greater_equal(torch.stack(returns).diff(), 0.0),
        distance_to_the_optimum=less_equal(best - returns[-1], 0.1),
    )


@claim("B18.5-2")
def the_surrogate_bounds_the_return_from_below() -> Evidence:
    """J(π') ≥ L(π') − 4εγ/(1 − γ)² max TV² for any two policies, and ∇L = ∇J at π (Schulman et al. 2015)."""
    process, margins, errors = random_process(5, 3, seed=1), [], []
    for seed in range(20):
        logits = random_logits(seed)
        old = softmax_policy(logits, process.allowed)
        for size in (0.01, 0.1, 1.0):
            new = softmax_policy(logits + size * random_logits(seed + 100), process.allowed)
            margins.append(expected_return(process, new, START) - improvement_lower_bound(process, old, new, START))
        leaf = logits.clone().requires_grad_()
        surrogate = surrogate_return(process, old, softmax_policy(leaf, process.allowed), START)
        (gradient,) = torch.autograd.grad(surrogate, leaf)
        errors.append((gradient - policy_gradient(process, old, START)).abs().max())
    return all_of(
        lower_bound=greater_equal(torch.stack(margins), 0.0), gradient=close(torch.stack(errors), 0.0, atol=1e-12)
    )


@claim("B18.5-2")
def the_performance_difference_lemma_holds() -> Evidence:
    """J(π') − J(π) = Σ d_π'(s) π'(a|s) A_π(s, a), exactly (Kakade and Langford 2002)."""
    process, errors = random_process(5, 3, seed=2), []
    for seed in range(10):
        old, new = (softmax_policy(random_logits(seed + more), process.allowed) for more in (0, 50))
        gain = process.occupancy(new, START) @ (new * process.advantages(old)).sum(-1)
        errors.append(gain - (expected_return(process, new, START) - expected_return(process, old, START)))
    return close(torch.stack(errors), 0.0, atol=1e-11)


@claim("B18.5-2")
def the_natural_gradient_is_the_advantage() -> Evidence:
    """F A = ∇J for a tabular softmax policy, and F is the Hessian of the mean KL (Kakade 2001)."""
    process, logits, shift = random_process(5, 3, seed=3), random_logits(0), random_logits(1)
    policy = softmax_policy(logits, process.allowed)
    visits = process.occupancy(policy, START)
    product = fisher_product(policy, visits, process.advantages(policy))
    step = 1e-3
    kl = occupancy_weighted_kl(process, policy, softmax_policy(logits + step * shift, process.allowed), START)
    quadratic = (shift * fisher_product(policy, visits / visits.sum(), shift)).sum() * step**2 / 2
    return all_of(
        gradient=close(product, policy_gradient(process, policy, START), atol=1e-12),
        curvature=close(kl, quadratic, rtol=5e-3),
    )


def surrogate_derivative(advantage: float, clip_range: float = 0.2) -> tuple[Tensor, Tensor]:
    """Ratios from 0.5 to 1.5, and the derivative of the clipped surrogate there."""
    ratio = torch.linspace(0.5, 1.5, 100, dtype=torch.float64).requires_grad_()  # none at the kinks
    clipped = clipped_surrogate(ratio, torch.full_like(ratio, advantage), clip_range)
    (slope,) = torch.autograd.grad(clipped.sum(), ratio)
    return ratio.detach(), slope


@claim("B18.5-3")
def the_clipped_surrogate_is_flat_on_one_side_only() -> Evidence:
    """The derivative is A, but 0 above 1 + ε for A > 0 and below 1 − ε for A < 0 (book sec. 18.5)."""
    ratio, up = surrogate_derivative(2.0)
    _, down = surrogate_derivative(-2.0)
    gain = clipped_surrogate(ratio, torch.full_like(ratio, 2.0), 0.2)
    log_prob = standard_normal(50).requires_grad_()
    advantage = standard_normal(50, seed=1)
    first = clipped_surrogate(policy_ratio(log_prob, log_prob), advantage, 0.2)
    (score,) = torch.autograd.grad(first.sum(), log_prob)
    return all_of(
        positive_advantage=close(up, 2.0 * (ratio < 1.2)),
        negative_advantage=close(down, -2.0 * (ratio > 0.8)),
        unclipped_upper_bound=less_equal(gain, 2 * ratio),
        first_gradient_is_that_of_actor_critic=close(score, advantage, atol=1e-12),
    )


@erratum("B18.5-3", printed="a ratio outside [1 − ε, 1 + ε] is penalised", right="min(ρA, clip(ρ)A): flat on one side")
def clipping_is_not_a_penalty() -> Correction:
    """A penalty would have a gradient at both borders; the objective is flat beyond one of them."""
    ratio, slope = surrogate_derivative(1.0)
    outside = (ratio > 1.2) | (ratio < 0.8)
    pulled_back = slope * (ratio - 1).sign() < 0  # towards 1
    return Correction(
        printed=close(pulled_back[outside].double(), 1.0),
        corrected=all_of(
            flat_beyond_one_border=close(slope[ratio > 1.2], 0.0),
            unchanged_beyond_the_other=close(slope[ratio < 0.8], 1.0),
        ),
    )
