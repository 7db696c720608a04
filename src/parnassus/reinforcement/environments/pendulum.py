"""Pendulum: swing up and balance a pendulum by a torque too weak to lift it directly."""

from dataclasses import dataclass
from math import pi

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.environments.interface import Continuous
from parnassus.reinforcement.environments.tensor_environments import DynamicsStep


@dataclass(frozen=True)
class Pendulum:
    """State (θ, θ̇) with θ = 0 upright, torque u between −2 and 2; no terminal state.

        reward −(θ² + 0.1 θ̇² + 0.001 u²),   θ̇ ← θ̇ + (3g/2l · sin θ + 3u/ml²)/20,  |θ̇| ≤ 8,   θ ← θ + θ̇/20

    with g = 10, l = m = 1 and θ² that of the angle within ±π. Exactly the values of Gymnasium's Pendulum-v1.
    """

    max_episode_steps: int = 200
    features = 3
    actions = Continuous((-2.0,), (2.0,))
    gravity, seconds, max_speed = 10.0, 0.05, 8.0

    def sample_initial_states(self, n_envs: int, device: torch.device) -> Float[Tensor, "envs 2"]:
        state = torch.empty(n_envs, 2, dtype=torch.float64, device=device).uniform_(-1, 1)
        return state * torch.tensor([pi, 1.0], dtype=torch.float64, device=device)

    def observe(self, state: Float[Tensor, "envs 2"]) -> Float[Tensor, "envs 3"]:
        angle, speed = state.unbind(1)
        return torch.stack([angle.cos(), angle.sin(), speed], 1)

    def step(self, state: Float[Tensor, "envs 2"], action: Float[Tensor, "envs 1"]) -> DynamicsStep:
        (angle, speed), torque = state.unbind(1), action[:, 0].to(state)
        wrapped_angle = torch.remainder(angle + pi, 2 * pi) - pi
        cost = wrapped_angle.square() + 0.1 * speed.square() + 0.001 * torque.square()
        speed = speed + (3 * self.gravity / 2 * angle.sin() + 3 * torque) * self.seconds
        speed = speed.clamp(-self.max_speed, self.max_speed)
        next_state = torch.stack([angle + speed * self.seconds, speed], 1)
        return DynamicsStep(next_state, -cost, torch.zeros_like(cost, dtype=torch.bool))
