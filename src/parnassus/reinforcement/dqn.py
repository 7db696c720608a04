"""DQN: Q-learning with a network, a memory and a held copy of the network (book sec. 18.3; Mnih et al. 2015)."""

from collections.abc import Callable
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
    updates: int = 256  # batches learned from each time
    batch: int = 64
    capacity: int = 100_000
    starts: int = 1_000  # steps before anything is learned
    held: int = 10  # steps for which the other network is held
    lr: float = 2.3e-3
    discount: float = 0.99
    exploring: float = 0.16  # share of the budget over which ε falls from 1 …
    epsilon: float = 0.04  # … to this
    border: float = 10.0  # errors beyond it count by their size, not its square
    norm: float = 10.0  # gradients are shortened to it
    width: int = 128  # of the hidden layers
    falling: bool = False  # the learning rate falls to 0
    n_steps: int = 5  # rewards before the held network is asked
    share: float = 1.0  # of the way to the network that the held one goes
    mean: float = 0.1  # the same for the mean that acts in the end

    def epsilon_at(self, step: int) -> float:
        """ε falls on a straight line, then stays."""
        return max(self.epsilon, 1 - (1 - self.epsilon) * step / max(1.0, self.exploring * self.budget))


_OFTEN = Settings(
    budget=100_000, copies=1, every=4, updates=4, batch=128, capacity=50_000, starts=0, held=250, lr=6.3e-4,
    exploring=0.12, epsilon=0.1, border=1.0, width=256, n_steps=3, mean=1.0,
)  # fmt: skip
TUNED = {
    "Acrobot-v1": _OFTEN,
    "LunarLander-v3": _OFTEN,
    "MountainCar-v0": Settings(
        budget=120_000, copies=1, every=16, updates=8, batch=128, capacity=10_000, held=600, lr=4e-3, discount=0.98,
        exploring=0.2, border=1.0, falling=True, mean=0.003,
    ),
}  # fmt: skip
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


def q_slope(
    q: Float[Tensor, "learners rows actions"],
    batch: Remembered,
    targets: Float[Tensor, "learners rows"],
    *,
    border: float = torch.inf,
) -> tuple[Float[Tensor, "learners rows actions"], Float[Tensor, "learners rows"]]:
    """∂L/∂Q of `q_loss`, written out, and the errors target − Q (book eq. 18.8).

    ∂L/∂Q(s, a) = −w clip(target − Q(s, a), −border, border) / rows  for the action taken, else 0
    """
    actions = batch.transitions.actions.unsqueeze(-1)
    errors = targets.unsqueeze(-1) - q.gather(-1, actions)
    each = errors.clamp(-border, border).mul_(-1 / errors.shape[1])
    each = each if batch.weights is None else batch.weights.unsqueeze(-1) * each
    return torch.zeros_like(q).scatter_(-1, actions, each), errors.squeeze(-1)


def explored(q: Float[Tensor, "*states actions"], epsilon: float) -> Int[Tensor, "*states"]:
    """The best action, or any of them with probability ε (book sec. 18.3)."""
    best = q.argmax(-1)
    anyhow = torch.randint_like(best, q.shape[-1])
    return torch.where(torch.rand(best.shape, device=q.device) < epsilon, anyhow, best)


def exploring(
    q: Callable[[Float[Tensor, "learners copies features"]], Float[Tensor, "learners copies actions"]],
    actions: int,
    epsilons: Float[Tensor, "steps learners copies"],
) -> Callable[[Float[Tensor, "learners copies features"]], Int[Tensor, "learners copies"]]:
    """The same step after step, ε that of the step; when to explore, and how, is drawn for all steps beforehand.

    Where all copies explore, nobody is asked what is best.
    """
    anyhow = torch.randint(actions, epsilons.shape, device=epsilons.device)
    explore = torch.rand_like(epsilons) < epsilons
    all_do, some_do = explore.flatten(1).all(1).tolist(), explore.flatten(1).any(1).tolist()
    plan = iter(zip(explore, anyhow, all_do, some_do, strict=True))

    def act(x: Tensor) -> Tensor:
        here, any_action, everywhere, somewhere = next(plan)
        best = any_action if everywhere else q(x).argmax(-1)
        return torch.where(here, any_action, best) if somewhere else best

    return act


@torch.no_grad()
def hold(held: nn.Module, model: nn.Module, share: float = 1.0) -> None:
    """θ⁻ ← θ⁻ + share (θ − θ⁻), θ⁻ ← θ unless told: the other network, which stays so until the next time.

    With a small share it is the moving mean of the network's weights (Polyak and Juditsky 1992).
    """
    if not 0 < share <= 1:
        raise ValueError(f"the other network goes a share of the way in (0, 1]; got share={share}")
    torch._foreach_lerp_(list(held.parameters()), list(model.parameters()), share)


def finitely_many(actions: Actions, name: str) -> int:
    """How many actions there are, or a sentence where they are not finitely many."""
    if not isinstance(actions, Discrete):
        raise ValueError(
            f"DQN chooses among finitely many actions; {name} has vectors within bounds ({actions.count} "
            f"{'number' if actions.count == 1 else 'numbers'} each): take ppo there"
        )
    return actions.count
