"""PPO: many small steps on what one policy saw, none too far from it (book sec. 18.5; Schulman et al. 2017)."""

from collections.abc import Iterator
from dataclasses import dataclass

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
    horizon: int = 64
    batch: int = 128
    epochs: int = 4
    lr: float = 1e-3
    clip: float = 0.2
    discount: float = 0.99
    decay: float = 0.98
    entropy: float = 0.0
    normalised: bool = True


TUNED = {
    "Acrobot-v1": Settings(500_000, 16, 256, 256, 10, 1e-3, 0.2, 0.99, 0.94, 0.0, True),
    "LunarLander-v3": Settings(1_000_000, 16, 256, 256, 5, 1e-3, 0.2, 0.999, 0.98, 0.0, True),
    "MountainCar-v0": Settings(1_000_000, 16, 16, 64, 4, 3e-4, 0.2, 0.99, 0.98, 0.0, True),
    "Pendulum-v1": Settings(200_000, 16, 128, 256, 20, 1e-3, 0.2, 0.9, 0.95, 0.0, False),
}
"""For other environments, after what is known to work there."""


def ppo_loss(
    model: ActorCritic, batch: Judged, *, clip: float, value_weight: float = 0.5, entropy_weight: float = 0.0
) -> Float[Tensor, " learners"]:
    """−E min(ρ Â, clip(ρ, 1 − ε, 1 + ε) Â) + c_v E (v − R)² − c_H E H(π), with Â of mean 0 and deviation 1."""
    law, values = model(batch.observations)
    ratio = policy_ratio(law.log_prob(batch.actions), batch.log_probs)
    surrogate = clipped_surrogate(ratio, standardised(batch.advantages), clip)
    loss: Tensor = (value_weight * (values - batch.returns).square() - surrogate).mean(1)
    return loss - entropy_weight * law.entropy().mean(1) if entropy_weight else loss


@torch.no_grad()
def ppo_backward(
    model: ActorCritic, batch: Judged, *, clip: float, value_weight: float = 0.5, entropy_weight: float = 0.0
) -> None:
    """The gradient of `ppo_loss` into the parameters' `grad`, from slopes written down here and not found by autograd.

        ∂L/∂log π = −ρ Â/n, and 0 where the clip holds ρ;   ∂L/∂v = 2c_v (v − R)/n;   ∂L/∂H = −c_H/n

    for each of n rows: a third of the time, where networks are small.
    """
    trace, rows = model.traced(batch.observations), batch.returns.shape[1]
    law, values = model.said(trace, rows)
    ratio = policy_ratio(law.log_prob(batch.actions), batch.log_probs)
    gain = standardised(batch.advantages)
    surrogate = ratio * gain
    held = clipped_surrogate(ratio, gain, clip) != surrogate
    of_log_prob = surrogate.masked_fill_(held, 0.0).mul_(-1 / rows)
    of_value = (values - batch.returns).mul_(2 * value_weight / rows)
    model.pull_back(trace, batch.actions, of_log_prob, of_value, -entropy_weight / rows)


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
