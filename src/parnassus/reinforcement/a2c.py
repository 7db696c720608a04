"""A2C: an actor led by what its critic had not expected, a step at a time (book sec. 18.5; Mnih et al. 2016)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.both_heads import Trace
from parnassus.reinforcement.judged import Judged


@dataclass(frozen=True)
class Settings:
    """A2C's numbers; those for CartPole, with eight copies, unless told."""

    budget: int = 500_000
    copies: int = 8
    horizon: int = 5
    lr: float = 7e-4
    discount: float = 0.99
    decay: float = 1.0
    entropy: float = 0.0
    normalised: bool = True


TUNED = {
    "Acrobot-v1": Settings(500_000, 16, 5, 7e-4, 0.99, 1.0, 0.0, True),
    "LunarLander-v3": Settings(200_000, 8, 5, 8.3e-4, 0.995, 1.0, 1e-5, False),
    "MountainCar-v0": Settings(1_000_000, 16, 5, 7e-4, 0.99, 1.0, 0.0, True),
    "Pendulum-v1": Settings(1_000_000, 8, 8, 7e-4, 0.9, 0.9, 0.0, True),
}
"""For other environments, after what is known to work there."""


def a2c_loss(
    model: ActorCritic, batch: Judged, *, value_weight: float = 0.5, entropy_weight: float = 0.0
) -> Float[Tensor, " learners"]:
    """−E[Â log π(a|s)] + c_v E (v(s) − R)² − c_H E H(π), with Â and R taken as given (book eqs. 18.11-18.12).

    With λ = 0 they are δ = r + γ v(s') − v(s) and R = v + δ, and the two slopes are the book's: −E[δ ∇log π] for the
    actor, −2c_v E[δ ∇v] for the critic. It is right only for actions that this very policy chose: after one step new
    ones are needed.
    """
    law, values = model(batch.observations)
    gain = batch.advantages * law.log_prob(batch.actions)
    loss: Tensor = (value_weight * (values - batch.returns).square() - gain).mean(1)
    return loss - entropy_weight * law.entropy().mean(1) if entropy_weight else loss


@torch.no_grad()
def a2c_backward(
    model: ActorCritic,
    batch: Judged,
    trace: Trace | None = None,
    *,
    value_weight: float = 0.5,
    entropy_weight: float = 0.0,
) -> None:
    """The gradient of `a2c_loss` into the parameters' `grad`, from slopes written down here and not found by autograd.

        ∂L/∂log π = −Â/n,   ∂L/∂v = 2c_v (v − R)/n,   ∂L/∂H = −c_H/n   for each of n rows

    `trace` is what the model says of these states, and perhaps of others after them, where it was asked already.
    """
    trace = model.traced(batch.observations) if trace is None else trace
    rows = batch.returns.shape[1]
    of_value = (trace.value[:, :rows, 0] - batch.returns).mul_(2 * value_weight / rows)
    model.pull_back(trace, batch.actions, batch.advantages / -rows, of_value, -entropy_weight / rows)
