"""Claims about small steps of a policy: trust regions and clipped ratios (book sec. 18.5)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.reinforcement.claims.policies import random_process, source
from parnassus.reinforcement.planning import policy_iteration
from parnassus.reinforcement.policy_gradient import expected_return, policy_gradient, softmax_policy
from parnassus.reinforcement.surrogate import clipped_surrogate, policy_ratio
from parnassus.reinforcement.trust_region import (
    fisher_product,
    improvement_floor,
    mean_kl,
    surrogate_return,
    trust_region_step,
)

START = torch.full((5,), 0.2, dtype=torch.float64)


def random_logits(seed: int) -> Tensor:
    return torch.randn(5, 3, generator=source(seed), dtype=torch.float64)


@claim("B18.5-2")
def every_step_keeps_to_its_region_and_improves() -> Evidence:
    """KL ≤ δ and a larger surrogate at each of 40 steps, and the return ends at the best there is (book sec. 18.5)."""
    process, threshold = random_process(5, 3, seed=1), 0.02
    logits, returns, gains, spent = torch.zeros(5, 3, dtype=torch.float64), [], [], []
    for _ in range(40):
        returns.append(expected_return(process, softmax_policy(logits, process.allowed), START))
        step = trust_region_step(process, logits, START, threshold=threshold)
        logits = step.logits
        gains.append(step.gain)
        spent.append(step.kl)
    best = policy_iteration(process).values @ START
    return all_of(
        region=at_most(torch.tensor(spent), threshold),
        surrogate_grows=at_least(torch.tensor(gains), 0.0),
        return_grows=at_least(torch.stack(returns).diff(), 0.0),
        near_the_best=at_most(best - returns[-1], 0.1),
    )


@claim("B18.5-2")
def the_return_is_never_below_its_floor() -> Evidence:
    """J(π') ≥ L(π') − 4εγ/(1 − γ)² max TV² for any two policies, and L has J's slope (Schulman et al. 2015)."""
    process, over, slope = random_process(5, 3, seed=1), [], []
    for seed in range(20):
        logits = random_logits(seed)
        old = softmax_policy(logits, process.allowed)
        for size in (0.01, 0.1, 1.0):
            new = softmax_policy(logits + size * random_logits(seed + 100), process.allowed)
            over.append(expected_return(process, new, START) - improvement_floor(process, old, new, START))
        free = logits.clone().requires_grad_()
        surrogate = surrogate_return(process, old, softmax_policy(free, process.allowed), START)
        (gradient,) = torch.autograd.grad(surrogate, free)
        slope.append((gradient - policy_gradient(process, old, START)).abs().max())
    return all_of(floor=at_least(torch.stack(over), 0.0), same_slope=close(torch.stack(slope), 0.0, atol=1e-12))


@claim("B18.5-2")
def a_gain_is_the_advantage_where_the_new_policy_goes() -> Evidence:
    """J(π') − J(π) = Σ d_π'(s) π'(a|s) A_π(s, a), exactly (Kakade and Langford 2002)."""
    process, gaps = random_process(5, 3, seed=2), []
    for seed in range(10):
        old, new = (softmax_policy(random_logits(seed + more), process.allowed) for more in (0, 50))
        gain = process.occupancy(new, START) @ (new * process.advantages_of(old)).sum(-1)
        gaps.append(gain - (expected_return(process, new, START) - expected_return(process, old, START)))
    return close(torch.stack(gaps), 0.0, atol=1e-11)


@claim("B18.5-2")
def the_natural_gradient_is_the_advantage() -> Evidence:
    """F A = ∇J for a softmax table, and F is the curvature of the mean KL (Kakade 2001)."""
    process, logits, shift = random_process(5, 3, seed=3), random_logits(0), random_logits(1)
    policy = softmax_policy(logits, process.allowed)
    visits = process.occupancy(policy, START)
    product = fisher_product(policy, visits, process.advantages_of(policy))
    small = 1e-3
    spent = mean_kl(process, policy, softmax_policy(logits + small * shift, process.allowed), START)
    quadratic = (shift * fisher_product(policy, visits / visits.sum(), shift)).sum() * small**2 / 2
    return all_of(
        gradient=close(product, policy_gradient(process, policy, START), atol=1e-12),
        curvature=close(spent, quadratic, rtol=5e-3),
    )


def slopes(advantage: float, clip: float = 0.2) -> tuple[Tensor, Tensor]:
    """Ratios from 0.5 to 1.5, and the slope of the clipped surrogate there."""
    ratio = torch.linspace(0.5, 1.5, 100, dtype=torch.float64).requires_grad_()  # none at the corners
    clipped = clipped_surrogate(ratio, torch.full_like(ratio, advantage), clip)
    (slope,) = torch.autograd.grad(clipped.sum(), ratio)
    return ratio.detach(), slope


@claim("B18.5-3")
def the_clipped_objective_is_flat_in_the_good_direction_only() -> Evidence:
    """A > 0: slope A up to ρ = 1 + ε, then 0; A < 0: slope A down to ρ = 1 − ε, then 0 (book sec. 18.5)."""
    ratio, up = slopes(2.0)
    _, down = slopes(-2.0)
    gain = clipped_surrogate(ratio, torch.full_like(ratio, 2.0), 0.2)
    log_prob = torch.randn(50, generator=source(), dtype=torch.float64).requires_grad_()
    advantage = torch.randn(50, generator=source(1), dtype=torch.float64)
    first = clipped_surrogate(policy_ratio(log_prob, log_prob), advantage, 0.2)
    (score,) = torch.autograd.grad(first.sum(), log_prob)
    return all_of(
        good=close(up, 2.0 * (ratio < 1.2)),
        bad=close(down, -2.0 * (ratio > 0.8)),
        never_above_the_plain_one=at_most(gain, 2 * ratio),
        first_step_is_actor_critic=close(score, advantage, atol=1e-12),
    )


@erratum("B18.5-3", printed="a ratio outside [1 − ε, 1 + ε] is penalised", right="min(ρA, clip(ρ)A): flat on one side")
def outside_the_interval_nothing_is_penalised() -> Correction:
    """A penalty would pull back from both borders; the objective is flat behind one of them, by the sign of A."""
    ratio, slope = slopes(1.0)
    outside = (ratio > 1.2) | (ratio < 0.8)
    pulled_back = slope * (ratio - 1).sign() < 0  # towards 1
    return Correction(
        printed=close(pulled_back[outside].double(), 1.0),
        corrected=all_of(
            flat_behind_the_good_border=close(slope[ratio > 1.2], 0.0),
            unchanged_behind_the_other=close(slope[ratio < 0.8], 1.0),
        ),
    )
