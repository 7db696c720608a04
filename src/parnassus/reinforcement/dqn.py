"""DQN: Q-learning with a network, a memory and a held copy of the network (book sec. 18.3; Mnih et al. 2015)."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import huber_loss

from parnassus.reinforcement.environments.interface import Actions, Discrete
from parnassus.reinforcement.replay import Remembered
from parnassus.reinforcement.targets import taken


@dataclass(frozen=True)
class Settings:
    """DQN's numbers; those for CartPole unless told. Steps are those of one learner, in all its copies together."""

    budget: int = 50_000
    copies: int = 8
    every: int = 256  # steps between times of learning
    updates: int = 128  # batches learned from each time
    batch: int = 64
    capacity: int = 100_000
    starts: int = 1_000  # steps before anything is learned
    held: int = 10  # steps for which the other network is held
    lr: float = 1e-3
    discount: float = 0.99
    exploring: float = 0.16  # share of the budget over which ε falls from 1 …
    epsilon: float = 0.04  # … to this
    border: float = 1.0  # errors beyond it count by their size, not its square
    norm: float = 10.0  # gradients are shortened to it
    width: int = 64  # of the hidden layers
    falling: bool = True  # the learning rate falls to 0

    def epsilon_at(self, step: int) -> float:
        """ε falls on a straight line, then stays."""
        return max(self.epsilon, 1 - (1 - self.epsilon) * step / max(1.0, self.exploring * self.budget))


TUNED = {
    "Acrobot-v1": Settings(100_000, 1, 4, 4, 128, 50_000, 0, 250, 6.3e-4, 0.99, 0.12, 0.1, width=256, falling=False),
    "LunarLander-v3": Settings(
        100_000, 1, 4, 4, 128, 50_000, 0, 250, 6.3e-4, 0.99, 0.12, 0.1, width=256, falling=False
    ),
    "MountainCar-v0": Settings(
        120_000, 1, 16, 8, 128, 10_000, 1_000, 600, 4e-3, 0.98, 0.2, 0.07, width=256, falling=False
    ),
}
"""For other environments, after what is known to work there."""


class QLoss(NamedTuple):
    """The loss of each learner, and the errors it is made of, target − Q."""

    total: Float[Tensor, " learners"]
    errors: Float[Tensor, "learners rows"]


def q_loss(
    q: Float[Tensor, "learners rows actions"],
    batch: Remembered,
    targets: Float[Tensor, "learners rows"],
    *,
    border: float = torch.inf,
) -> QLoss:
    """E ½ (target − Q(s, a; θ))² for every learner, each row with its weight (book eq. 18.7).

    Errors larger than `border` count by their size alone, as a Huber loss has it: one surprise moves no more than many.
    """
    said = taken(q, batch.transitions.actions)
    each = huber_loss(said, targets, reduction="none", delta=border)
    each = each if batch.weights is None else batch.weights * each
    return QLoss(each.mean(1), (targets - said).detach())


def explored(q: Float[Tensor, "*states actions"], epsilon: float) -> Int[Tensor, "*states"]:
    """The best action, or any of them with probability ε (book sec. 18.3)."""
    best = q.argmax(-1)
    anyhow = torch.randint_like(best, q.shape[-1])
    return torch.where(torch.rand(best.shape, device=q.device) < epsilon, anyhow, best)


@torch.no_grad()
def hold(held: nn.Module, model: nn.Module) -> None:
    """θ⁻ ← θ: the other network is as this one now, and stays so until the next time."""
    torch._foreach_copy_(list(held.parameters()), list(model.parameters()))


def finitely_many(actions: Actions, name: str) -> int:
    """How many actions there are, or a sentence where they are not finitely many."""
    if not isinstance(actions, Discrete):
        raise ValueError(
            f"DQN chooses among finitely many actions; {name} has vectors within bounds ({actions.count} "
            f"{'number' if actions.count == 1 else 'numbers'} each): take ppo there"
        )
    return actions.count
