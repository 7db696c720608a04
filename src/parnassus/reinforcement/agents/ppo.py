"""PPO: epochs of mini-batch steps on a clipped surrogate (book sec. 18.5; Schulman et al. 2017)."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.surrogate import clipped_surrogate, policy_ratio
from parnassus.reinforcement.experience.rollout_batch import RolloutBatch, standardise
from parnassus.setting_types import NonNegative, Positive, UnitInterval


@dataclass(frozen=True)
class PPOSettings:
    """Hyperparameters of PPO; the defaults are tuned for CartPole."""

    total_timesteps: Positive[int] = 100_000  # environment steps per learner
    n_envs: Positive[int] = 8  # environments per learner
    n_steps: Positive[int] = 64  # steps per environment between updates
    batch_size: Positive[int] = 128  # rows per mini-batch
    n_epochs: Positive[int] = 4  # passes over each rollout
    learning_rate: Positive[float] = 1e-3  # initial learning rate of Adam; decreases linearly to 0
    clip_range: Positive[float] = 0.2  # clip range ε of the probability ratio; decreases linearly
    gamma: UnitInterval = 0.99  # discount factor
    gae_lambda: UnitInterval = 0.98  # λ of generalised advantage estimation
    vf_coef: NonNegative[float] = 0.5  # value function coefficient of the loss
    ent_coef: NonNegative[float] = 0.0  # entropy coefficient of the loss
    max_grad_norm: Positive[float] = 0.5  # maximum gradient norm of each learner
    normalize: bool = True  # normalise observations and rewards by running statistics


TUNED = {
    "Acrobot-v1": {
        "total_timesteps": 500_000, "n_envs": 16, "n_steps": 256, "batch_size": 256, "n_epochs": 10,
        "gae_lambda": 0.94,
    },
    "LunarLander-v3": {
        "total_timesteps": 1_000_000, "n_envs": 16, "n_steps": 256, "batch_size": 256, "n_epochs": 5, "gamma": 0.999,
    },
    "MountainCar-v0": {
        "total_timesteps": 1_000_000, "n_envs": 16, "n_steps": 16, "batch_size": 64, "learning_rate": 3e-4,
    },
    "Pendulum-v1": {
        "total_timesteps": 200_000, "n_envs": 16, "n_steps": 128, "batch_size": 256, "n_epochs": 20, "gamma": 0.9,
        "gae_lambda": 0.95, "normalize": False,
    },
}  # fmt: skip
"""Overrides of the defaults, tuned for other environments."""


def ppo_loss(
    model: ActorCritic, batch: RolloutBatch, *, clip_range: float, vf_coef: float = 0.5, ent_coef: float = 0.0
) -> Float[Tensor, " learners"]:
    """−E min(ρ Â, clip(ρ, 1 − ε, 1 + ε) Â) + c_v E (v − R)² − c_H E H(π), with Â standardised.

    `fast.ppo_backward` writes the same gradient without autograd.
    """
    distribution, values = model(batch.observations)
    ratio = policy_ratio(distribution.log_prob(batch.actions), batch.log_probs)
    surrogate = clipped_surrogate(ratio, standardise(batch.advantages), clip_range)
    loss: Tensor = (vf_coef * (values - batch.returns).square() - surrogate).mean(1)
    return loss - ent_coef * distribution.entropy().mean(1) if ent_coef else loss


def minibatches(batch: RolloutBatch, batch_size: int, n_epochs: int) -> Iterator[RolloutBatch]:
    """All rows in batches, `n_epochs` times, in an independent random order for each learner."""
    learners, rows = batch.advantages.shape
    for _ in range(n_epochs):
        if batch_size >= rows:  # one full batch: the order has no effect
            yield batch
            continue
        order = torch.rand(learners, rows, device=batch.advantages.device).argsort(1)
        for start in range(0, rows - batch_size + 1, batch_size):
            yield batch.select_rows(order[:, start : start + batch_size])
