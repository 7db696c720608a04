"""A2C: an actor led by what its critic had not expected, a step at a time (book sec. 18.5; Mnih et al. 2016)."""

from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.actor_critic import ActorCritic
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
    normalised: bool = False


TUNED = {
    "Acrobot-v1": Settings(500_000, 16, 5, 7e-4, 0.99, 1.0, 0.0, True),
    "LunarLander-v3": Settings(200_000, 8, 5, 8.3e-4, 0.995, 1.0, 1e-5, False),
    "MountainCar-v0": Settings(1_000_000, 16, 5, 7e-4, 0.99, 1.0, 0.0, True),
    "Pendulum-v1": Settings(1_000_000, 8, 8, 7e-4, 0.9, 0.9, 0.0, True),
}
"""For other environments, after what is known to work there."""


class A2CLoss(NamedTuple):
    """The loss, and what it is made of, for each learner."""

    total: Float[Tensor, " learners"]
    gain: Float[Tensor, " learners"]
    value_error: Float[Tensor, " learners"]
    entropy: Float[Tensor, " learners"]


def a2c_loss(model: ActorCritic, batch: Judged, *, value_weight: float = 0.5, entropy_weight: float = 0.0) -> A2CLoss:
    """−E[Â log π(a|s)] + c_v E (v(s) − R)² − c_H E H(π), with Â and R taken as given (book eqs. 18.11-18.12).

    With λ = 0 they are δ = r + γ v(s') − v(s) and R = v + δ, and the two slopes are the book's: −E[δ ∇log π] for the
    actor, −2c_v E[δ ∇v] for the critic. It is right only for actions that this very policy chose: after one step new
    ones are needed.
    """
    law, values = model(batch.observations)
    gain = (batch.advantages * law.log_prob(batch.actions)).mean(1)
    value_error = (values - batch.returns).square().mean(1)
    entropy = law.entropy().mean(1)
    return A2CLoss(-gain + value_weight * value_error - entropy_weight * entropy, gain, value_error, entropy)
