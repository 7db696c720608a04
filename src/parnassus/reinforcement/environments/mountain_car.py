"""A car in a valley whose engine is too weak to climb out at once (Moore 1990)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.environments.interface import Discrete
from parnassus.reinforcement.environments.simulated import Move


@dataclass(frozen=True)
class MountainCar:
    """State (x, ẋ); push left, not, or right; −1 for every step until x ≥ 0.5.

        ẋ ← ẋ + 0.001 (a − 1) − 0.0025 cos 3x,   |ẋ| ≤ 0.07,     x ← x + ẋ,   −1.2 ≤ x ≤ 0.6

    The wall on the left stops the car. gymnasium's MountainCar-v0, number by number.
    """

    longest: int = 200
    features = 2
    actions = Discrete(3)
    force, gravity, fastest, left, right, goal = 0.001, 0.0025, 0.07, -1.2, 0.6, 0.5

    def start(self, copies: int, device: torch.device) -> Float[Tensor, "copies 2"]:
        place = torch.empty(copies, dtype=torch.float64, device=device).uniform_(-0.6, -0.4)
        return torch.stack([place, torch.zeros_like(place)], 1)

    def observe(self, state: Float[Tensor, "copies 2"]) -> Float[Tensor, "copies 2"]:
        return state

    def move(self, state: Float[Tensor, "copies 2"], action: Int[Tensor, " copies"]) -> Move:
        x, speed = state.unbind(1)
        speed = speed + ((action - 1) * self.force + (3 * x).cos() * -self.gravity)
        speed = speed.clamp(-self.fastest, self.fastest)
        x = (x + speed).clamp(self.left, self.right)
        speed = speed.masked_fill((x == self.left) & (speed < 0), 0.0)
        return Move(torch.stack([x, speed], 1), -torch.ones_like(x), (x >= self.goal) & (speed >= 0))
