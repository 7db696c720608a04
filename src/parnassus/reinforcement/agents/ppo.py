"""PPO: epochs of minibatch steps on a clipped surrogate (book sec. 18.5; Schulman et al. 2017)."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.surrogate import clipped_surrogate, policy_ratio
from parnassus.reinforcement.experience.rollout_batch import RolloutBatch, standardise


@dataclass(frozen=True)
class Settings:
    """Hyperparameters of PPO; the defaults are tuned for CartPole."""

    total_timesteps: int = 100_000
    n_envs: int = 8
    n_steps: int = 64
    batch_size: int = 128
    n_epochs: int = 4
    learning_rate: float = 1e-3
    clip_range: float = 0.2
    gamma: float = 0.99
    gae_lambda: float = 0.98
    ent_coef: float = 0.0
    normalize: bool = True


TUNED = {
    "Acrobot-v1": Settings(500_000, 16, 256, 256, 10, 1e-3, 0.2, 0.99, 0.94, 0.0, True),
    "LunarLander-v3": Settings(1_000_000, 16, 256, 256, 5, 1e-3, 0.2, 0.999, 0.98, 0.0, True),
    "MountainCar-v0": Settings(1_000_000, 16, 16, 64, 4, 3e-4, 0.2, 0.99, 0.98, 0.0, True),
    "Pendulum-v1": Settings(200_000, 16, 128, 256, 20, 1e-3, 0.2, 0.9, 0.95, 0.0, False),
}
"""Settings tuned for other environments."""


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
    """All rows in batches, `n_epochs` times, in a random order of each learner's own."""
    learners, rows = batch.advantages.shape
    for _ in range(n_epochs):
        if batch_size >= rows:  # one full batch: the order does not matter
            yield batch
            continue
        order = torch.rand(learners, rows, device=batch.advantages.device).argsort(1)
        for start in range(0, rows - batch_size + 1, batch_size):
            yield batch.select_rows(order[:, start : start + batch_size])
