"""DQN: Q-learning with a network, replay and a target network (book sec. 18.3; Mnih et al. 2015)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import huber_loss

from parnassus.reinforcement.agents.q_learning_targets import values_of_actions
from parnassus.reinforcement.agents.q_network import DuelingQNetwork, QNetwork
from parnassus.reinforcement.environments.interface import Actions, Discrete
from parnassus.reinforcement.experience.replay_buffer import ReplaySample
from parnassus.setting_types import NonNegative, Positive, UnitInterval


@dataclass(frozen=True)
class DQNSettings:
    """Hyperparameters of DQN; the defaults are tuned for CartPole.

    Environment steps are counted per learner, over all its environments.
    """

    total_timesteps: Positive[int] = 50_000  # environment steps per learner
    n_envs: Positive[int] = 8  # environments per learner
    train_freq: Positive[int] = 256  # environment steps between training phases
    gradient_steps: Positive[int] = 256  # gradient steps per training phase
    batch_size: Positive[int] = 64  # transitions per gradient step
    buffer_size: Positive[int] = 100_000  # capacity of the replay buffer
    learning_starts: NonNegative[int] = 1_000  # environment steps before the first gradient step
    target_update_interval: Positive[int] = 10  # environment steps between updates of the target network
    learning_rate: Positive[float] = 2.3e-3  # learning rate of Adam
    gamma: UnitInterval = 0.99  # discount factor
    exploration_fraction: UnitInterval = 0.16  # fraction of training over which ε decreases from 1
    exploration_final_eps: UnitInterval = 0.04  # final ε
    huber_delta: Positive[float] = 10.0  # error beyond which the loss is linear
    max_grad_norm: Positive[float] = 10.0  # maximum gradient norm
    width: Positive[int] = 128  # units of each of the two hidden layers
    decay_learning_rate: bool = False  # decrease the learning rate linearly to 0
    n_steps: Positive[int] = 5  # rewards in an n-step target
    tau: UnitInterval = 1.0  # soft update coefficient of the target network
    averaging_tau: UnitInterval = 0.1  # coefficient of the moving average of the weights used for evaluation

    def epsilon_at(self, step: int) -> float:
        """ε decreases linearly from 1 over the first part of training, then stays constant."""
        final, exploring = self.exploration_final_eps, self.exploration_fraction * self.total_timesteps
        return max(final, 1 - (1 - final) * step / max(1.0, exploring))


TUNED = {
    "Acrobot-v1": {
        "total_timesteps": 100_000, "n_envs": 1, "train_freq": 4, "gradient_steps": 4, "batch_size": 128,
        "buffer_size": 50_000, "learning_starts": 0, "target_update_interval": 250, "learning_rate": 6.3e-4,
        "exploration_fraction": 0.12, "exploration_final_eps": 0.1, "huber_delta": 1.0, "width": 256, "n_steps": 3,
        "averaging_tau": 1.0,
    },
    "LunarLander-v3": {
        "total_timesteps": 100_000, "n_envs": 1, "train_freq": 4, "gradient_steps": 4, "batch_size": 128,
        "buffer_size": 50_000, "learning_starts": 0, "target_update_interval": 250, "learning_rate": 6.3e-4,
        "exploration_fraction": 0.12, "exploration_final_eps": 0.1, "huber_delta": 1.0, "width": 256, "n_steps": 3,
        "averaging_tau": 1.0,
    },
    "MountainCar-v0": {
        "total_timesteps": 120_000, "n_envs": 1, "train_freq": 16, "gradient_steps": 8, "batch_size": 128,
        "buffer_size": 10_000, "target_update_interval": 600, "learning_rate": 4e-3, "gamma": 0.98,
        "exploration_fraction": 0.2, "huber_delta": 1.0, "decay_learning_rate": True, "averaging_tau": 0.003,
    },
}  # fmt: skip
"""Overrides of the defaults, tuned for other environments."""


class QLoss(NamedTuple):
    """The loss of each learner, and the errors target − Q from which it is computed."""

    total: Float[Tensor, " learners"]
    errors: Float[Tensor, "learners rows"]


def dqn_loss(
    model: QNetwork | DuelingQNetwork,
    batch: ReplaySample,
    targets: Float[Tensor, "learners rows"],
    *,
    huber_delta: float = torch.inf,
) -> QLoss:
    """`q_loss` of Q(s, ·; θ); `fast.dqn_backward` writes the same gradient without autograd."""
    return q_loss(model(batch.transitions.observations), batch, targets, huber_delta=huber_delta)


def q_loss(
    q: Float[Tensor, "learners rows actions"],
    batch: ReplaySample,
    targets: Float[Tensor, "learners rows"],
    *,
    huber_delta: float = torch.inf,
) -> QLoss:
    """E ½ (target − Q(s, a; θ))² for every learner, weighted if the sample has weights (book eq. 18.7).

    The loss is linear in errors larger than `huber_delta` (Huber loss), which bounds the influence of each transition.
    """
    predicted = values_of_actions(q, batch.transitions.actions)
    each = huber_loss(predicted, targets, reduction="none", delta=huber_delta)
    each = each if batch.weights is None else batch.weights * each
    return QLoss(each.mean(1), (targets - predicted).detach())


def epsilon_greedy(q: Float[Tensor, "*states actions"], epsilon: float) -> Int[Tensor, "*states"]:
    """The greedy action with probability 1 − ε, else a uniformly random one (book sec. 18.3)."""
    greedy = q.argmax(-1)
    random = torch.randint_like(greedy, q.shape[-1])
    return torch.where(torch.rand(greedy.shape, device=q.device) < epsilon, random, greedy)


def epsilon_greedy_actor(
    q: Callable[[Float[Tensor, "learners envs features"]], Float[Tensor, "learners envs actions"]],
    actions: int,
    epsilons: Float[Tensor, "steps learners envs"],
) -> Callable[[Float[Tensor, "learners envs features"]], Int[Tensor, "learners envs"]]:
    """An ε-greedy policy for consecutive steps with one ε each; all random numbers are drawn in advance.

    Where every environment explores, `q` is not evaluated.
    """
    random_actions = torch.randint(actions, epsilons.shape, device=epsilons.device)
    explore = torch.rand_like(epsilons) < epsilons
    all_explore, any_explore = explore.flatten(1).all(1).tolist(), explore.flatten(1).any(1).tolist()
    steps = iter(zip(explore, random_actions, all_explore, any_explore, strict=True))

    def act(x: Tensor) -> Tensor:
        is_exploring, random, all_exploring, any_exploring = next(steps)
        greedy = random if all_exploring else q(x).argmax(-1)
        return torch.where(is_exploring, random, greedy) if any_exploring else greedy

    return act


@torch.no_grad()
def update_target(target: nn.Module, model: nn.Module, tau: float = 1.0) -> None:
    """θ⁻ ← θ⁻ + τ (θ − θ⁻); by default a copy, θ⁻ ← θ.

    With a small τ it is an exponential moving average of the weights (Polyak and Juditsky 1992).
    """
    if not 0 < tau <= 1:
        raise ValueError(f"tau must be in (0, 1]; got tau={tau}")
    for held, current in zip(target.parameters(), model.parameters(), strict=True):
        held.lerp_(current, tau)


def count_discrete_actions(actions: Actions, name: str) -> int:
    """The number of actions. Raise a ValueError if they are continuous."""
    if not isinstance(actions, Discrete):
        raise ValueError(
            f"DQN needs a finite number of actions; {name} has continuous actions of dimension {actions.count}: "
            "use ppo instead"
        )
    return actions.count
