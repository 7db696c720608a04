"""PPO: many small steps on what one policy saw, none too far from it (book sec. 18.5; Schulman et al. 2017)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.judged import Judged, standardised
from parnassus.reinforcement.surrogate import clipped_surrogate, policy_ratio


@dataclass(frozen=True)
class Settings:
    """PPO's numbers; those for CartPole, with eight copies, unless told."""

    budget: int = 100_000
    copies: int = 8
    horizon: int = 32
    batch: int = 256
    epochs: int = 20
    lr: float = 1e-3
    clip: float = 0.2
    discount: float = 0.98
    decay: float = 0.8
    entropy: float = 0.0
    normalised: bool = False


TUNED = {
    "Acrobot-v1": Settings(500_000, 16, 256, 256, 4, 3e-4, 0.2, 0.99, 0.94, 0.0, True),
    "LunarLander-v3": Settings(1_000_000, 16, 1_024, 1_024, 10, 1e-3, 0.2, 0.999, 0.98, 0.01, False),
    "MountainCar-v0": Settings(1_000_000, 16, 16, 64, 4, 3e-4, 0.2, 0.99, 0.98, 0.0, True),
    "Pendulum-v1": Settings(100_000, 4, 1_024, 256, 10, 1e-3, 0.2, 0.9, 0.95, 0.0, True),
}
"""For other environments, after what is known to work there."""


class PPOLoss(NamedTuple):
    """The loss, and what it is made of, for each learner."""

    total: Float[Tensor, " learners"]
    surrogate: Float[Tensor, " learners"]
    value_error: Float[Tensor, " learners"]
    entropy: Float[Tensor, " learners"]


def ppo_loss(
    model: ActorCritic, batch: Judged, *, clip: float, value_weight: float = 0.5, entropy_weight: float = 0.0
) -> PPOLoss:
    """−E min(ρ Â, clip(ρ, 1 − ε, 1 + ε) Â) + c_v E (v − R)² − c_H E H(π), with Â of mean 0 and deviation 1."""
    law, values = model(batch.observations)
    ratio = policy_ratio(law.log_prob(batch.actions), batch.log_probs)
    surrogate = clipped_surrogate(ratio, standardised(batch.advantages), clip).mean(1)
    value_error = (values - batch.returns).square().mean(1)
    entropy = law.entropy().mean(1)
    return PPOLoss(-surrogate + value_weight * value_error - entropy_weight * entropy, surrogate, value_error, entropy)


def minibatches(seen: Judged, rows: int, epochs: int) -> Iterator[Judged]:
    """All rows in a new order, cut into batches of `rows`, `epochs` times over; each learner has orders of its own."""
    learners, there = seen.advantages.shape
    for _ in range(epochs):
        if rows >= there:  # the order of a whole does not matter
            yield seen
            continue
        order = torch.rand(learners, there, device=seen.advantages.device).argsort(1)
        for start in range(0, there - rows + 1, rows):
            yield seen.rows(order[:, start : start + rows])
