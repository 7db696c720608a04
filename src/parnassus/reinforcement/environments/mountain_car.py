"""MountainCar: a car in a valley, whose engine is too weak to drive straight up (Moore 1990)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.environments.interface import Discrete
from parnassus.reinforcement.environments.tensor_environments import DynamicsStep


@dataclass(frozen=True)
class MountainCar:
    """State (x, ẋ), push left, none or right, reward −1 per step until x ≥ 0.5.

        ẋ ← ẋ + 0.001 (a − 1) − 0.0025 cos 3x,   |ẋ| ≤ 0.07,     x ← x + ẋ,   −1.2 ≤ x ≤ 0.6

    The wall on the left stops the car. Its values are exactly those of Gymnasium's MountainCar-v0.
    """

    max_episode_steps: int = 200
    features = 2
    actions = Discrete(3)
    force, gravity, max_speed, left, right, goal = 0.001, 0.0025, 0.07, -1.2, 0.6, 0.5

    def sample_initial_states(self, n_envs: int, device: torch.device) -> Float[Tensor, "envs 2"]:
        position = torch.empty(n_envs, dtype=torch.float64, device=device).uniform_(-0.6, -0.4)
        return torch.stack([position, torch.zeros_like(position)], 1)

    def observe(self, state: Float[Tensor, "envs 2"]) -> Float[Tensor, "envs 2"]:
        return state

    def step(self, state: Float[Tensor, "envs 2"], action: Int[Tensor, " envs"]) -> DynamicsStep:
        x, speed = state.unbind(1)
        speed = speed + ((action - 1) * self.force + (3 * x).cos() * -self.gravity)
        speed = speed.clamp(-self.max_speed, self.max_speed)
        x = (x + speed).clamp(self.left, self.right)
        speed = speed.masked_fill((x == self.left) & (speed < 0), 0.0)
        return DynamicsStep(torch.stack([x, speed], 1), -torch.ones_like(x), (x >= self.goal) & (speed >= 0))
