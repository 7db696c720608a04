"""TRPO: natural-gradient steps limited by a KL divergence (book sec. 18.5; Schulman et al. 2015).

max_θ E[ρ Â]   subject to   E KL(π_old(·|s) ‖ π_θ(·|s)) ≤ δ
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.optim.optimisers.conjugate_gradient import conjugate_gradient
from parnassus.reinforcement.agents.action_distributions import ActionDistribution, Categorical, DiagonalGaussian
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.actor_parameters import ActorParameters
from parnassus.reinforcement.agents.surrogate import policy_ratio
from parnassus.reinforcement.experience.rollout_batch import RolloutBatch, standardise
from parnassus.setting_types import NonNegative, Positive, UnitInterval


@dataclass(frozen=True)
class TRPOSettings:
    """Hyperparameters of TRPO; the defaults are tuned for CartPole.

    Observations are not normalised: changing running statistics would move the policy outside the KL constraint.
    """

    total_timesteps: Positive[int] = 100_000  # environment steps per learner
    n_envs: Positive[int] = 8  # environments per learner
    n_steps: Positive[int] = 128  # steps per environment between updates
    target_kl: Positive[float] = 0.01  # δ, maximum KL divergence of an update
    cg_damping: NonNegative[float] = 1e-3  # damping added to the Fisher matrix
    cg_max_steps: Positive[int] = 15  # maximum number of conjugate gradient steps
    batch_size: Positive[int] = 256  # rows per mini-batch of the critic
    n_epochs: Positive[int] = 20  # passes of the critic over each rollout
    learning_rate: Positive[float] = 2e-3  # learning rate of Adam for the critic
    gamma: UnitInterval = 0.98  # discount factor
    gae_lambda: UnitInterval = 0.9  # λ of generalised advantage estimation


TUNED = {
    "Acrobot-v1": {"n_steps": 256, "cg_damping": 0.1, "learning_rate": 1e-3, "gamma": 0.99, "gae_lambda": 0.95},
    "LunarLander-v3": {
        "total_timesteps": 200_000, "n_steps": 256, "cg_damping": 0.1, "learning_rate": 1e-3, "gamma": 0.99,
        "gae_lambda": 0.98,
    },
    "Pendulum-v1": {
        "n_steps": 256, "cg_damping": 0.1, "n_epochs": 15, "learning_rate": 1e-3, "gamma": 0.9, "gae_lambda": 0.95,
    },
}  # fmt: skip
"""Overrides of the defaults, tuned for other environments."""


class UpdateStatistics(NamedTuple):
    """For each learner, an update's KL divergence, surrogate gain and number of backtracks.

    Where no step length satisfied the conditions the policy is unchanged: `kl` and `gain` are 0.
    """

    kl: Float[Tensor, " learners"]
    gain: Float[Tensor, " learners"]
    backtracks: Int[Tensor, " learners"]


def trust_region_update(
    model: ActorCritic,
    batch: RolloutBatch,
    *,
    target_kl: float,
    cg_damping: float = 1e-3,
    cg_max_steps: int = 15,
    shrinking_factor: float = 0.8,
    max_backtracks: int = 10,
) -> UpdateStatistics:
    """Increase the surrogate L = E[ρ Â] of each learner's actor within its trust region (book sec. 18.5).

        x = (F + damping)⁻¹ ∇L,   θ' = θ + shrinking_factor^j √(2δ / xᵀ(F + damping)x) x

    with the smallest j < max_backtracks for which E KL(π_old ‖ π_θ') ≤ δ and L has increased. F is the Hessian of the
    mean KL at θ; F x is the gradient of ⟨∇KL, x⟩, so that F itself is never formed.
    """
    if not (target_kl > 0 and cg_damping >= 0 and 0 < shrinking_factor < 1 and max_backtracks >= 1):
        raise ValueError(
            "need target_kl > 0, cg_damping ≥ 0, 0 < shrinking_factor < 1 and max_backtracks ≥ 1; got "
            f"target_kl={target_kl}, cg_damping={cg_damping}, shrinking_factor={shrinking_factor}, "
            f"max_backtracks={max_backtracks}"
        )
    actor, advantages = ActorParameters(model), standardise(batch.advantages)
    before = actor.read()
    distribution = model.distribution(batch.observations)
    old = detach_distribution(distribution)
    gradient = actor.gradient(mean_surrogate(distribution, batch, advantages).sum(), retain_graph=True)
    kl_gradient = actor.gradient(mean_kl(old, distribution).sum(), create_graph=True)

    def hessian_product(x: Tensor) -> Tensor:
        return actor.gradient((kl_gradient * x).sum(), retain_graph=True) + cg_damping * x

    direction = conjugate_gradient(hessian_product, gradient, max_steps=cg_max_steps, dim=1).x
    curvature = (direction * hessian_product(direction)).sum(1, keepdim=True)
    full_step = (2 * target_kl / curvature.clamp(min=1e-30)).sqrt() * direction
    return line_search(
        model,
        batch,
        before,
        full_step,
        target_kl=target_kl,
        shrinking_factor=shrinking_factor,
        max_backtracks=max_backtracks,
    )


@torch.no_grad()
def line_search(
    model: ActorCritic,
    batch: RolloutBatch,
    before: Float[Tensor, "learners weights"],
    full_step: Float[Tensor, "learners weights"],
    *,
    target_kl: float,
    shrinking_factor: float,
    max_backtracks: int,
) -> UpdateStatistics:
    """Shorten each learner's step until KL ≤ target_kl and the surrogate has increased, else keep θ."""
    actor, advantages = ActorParameters(model), standardise(batch.advantages)
    old = detach_distribution(model.distribution(batch.observations))
    start = mean_surrogate(old, batch, advantages)
    accepted, weights = torch.zeros_like(start, dtype=torch.bool), before
    kl, gain, backtracks = torch.zeros_like(start), torch.zeros_like(start), torch.zeros_like(start, dtype=torch.int64)
    for attempt in range(max_backtracks):
        candidate = before + shrinking_factor**attempt * full_step
        actor.write(candidate)
        distribution = model.distribution(batch.observations)
        new_kl, new_gain = mean_kl(old, distribution), mean_surrogate(distribution, batch, advantages) - start
        fits = ~accepted & (new_kl <= target_kl) & (new_gain > 0)
        weights = torch.where(fits[:, None], candidate, weights)
        kl, gain = torch.where(fits, new_kl, kl), torch.where(fits, new_gain, gain)
        accepted = accepted | fits
        if bool(accepted.all()):
            break
        backtracks += ~accepted
    actor.write(weights)
    return UpdateStatistics(kl, gain, backtracks)


def mean_surrogate(
    distribution: ActionDistribution, batch: RolloutBatch, advantages: Float[Tensor, "learners rows"]
) -> Float[Tensor, " learners"]:
    """L = E[π(a|s)/π_old(a|s) Â] over each learner's batch."""
    return (policy_ratio(distribution.log_prob(batch.actions), batch.log_probs) * advantages).mean(1)


def mean_kl(old: ActionDistribution, new: ActionDistribution) -> Float[Tensor, " learners"]:
    """E KL(π_old(·|s) ‖ π_new(·|s)) over each learner's states."""
    if isinstance(old, Categorical) and isinstance(new, Categorical):
        return old.kl(new).mean(1)
    if isinstance(old, DiagonalGaussian) and isinstance(new, DiagonalGaussian):
        return old.kl(new).mean(1)
    raise ValueError(f"both distributions must have the same type; got {type(old).__name__} and {type(new).__name__}")


def detach_distribution(distribution: ActionDistribution) -> ActionDistribution:
    """A constant copy, independent of later changes of the weights."""
    if isinstance(distribution, Categorical):
        return Categorical(distribution.logits.detach().clone())
    return DiagonalGaussian(distribution.mean.detach().clone(), distribution.log_std.detach().clone())
