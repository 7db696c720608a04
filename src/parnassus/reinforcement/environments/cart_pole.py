"""CartPole: balance a pole on a cart by pushes to the left or right (Barto, Sutton and Anderson 1983)."""

from dataclasses import dataclass
from math import pi

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.environments.interface import Discrete
from parnassus.reinforcement.environments.tensor_environments import DynamicsStep


@dataclass(frozen=True)
class CartPole:
    """State (x, ẋ, θ, θ̇), force ±10, reward 1 per step; terminated when |θ| > 12° or |x| > 2.4.

        θ̈ = (g sin θ − cos θ · p) / (l (4/3 − m cos² θ / M)),   p = (F + m l θ̇² sin θ) / M
        ẍ = p − m l θ̈ cos θ / M

    with M the total mass, m that of the pole and l half its length, by Euler steps of 1/50 s; exactly the values of
    Gymnasium's CartPole-v1.
    """

    max_episode_steps: int = 500
    features = 4
    actions = Discrete(2)
    gravity, cart, pole, half_length, force, seconds = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
    max_position, max_angle = 2.4, 12 * 2 * pi / 360

    def sample_initial_states(self, n_envs: int, device: torch.device) -> Float[Tensor, "envs 4"]:
        return torch.empty(n_envs, 4, dtype=torch.float64, device=device).uniform_(-0.05, 0.05)

    def observe(self, state: Float[Tensor, "envs 4"]) -> Float[Tensor, "envs 4"]:
        return state

    def step(self, state: Float[Tensor, "envs 4"], action: Int[Tensor, " envs"]) -> DynamicsStep:
        x, speed, angle, angular_speed = state.unbind(1)
        sine, cosine = angle.sin(), angle.cos()
        total_mass, pole_moment = self.cart + self.pole, self.pole * self.half_length
        p = (self.force * (2 * action - 1) + pole_moment * angular_speed.square() * sine) / total_mass
        angular_acceleration = (self.gravity * sine - cosine * p) / (
            self.half_length * (4.0 / 3.0 - self.pole * cosine.square() / total_mass)
        )
        acceleration = p - pole_moment * angular_acceleration * cosine / total_mass
        derivative = torch.stack([speed, acceleration, angular_speed, angular_acceleration], 1)
        next_state = state + self.seconds * derivative
        terminated = (next_state[:, 0].abs() > self.max_position) | (next_state[:, 2].abs() > self.max_angle)
        return DynamicsStep(next_state, torch.ones_like(x), terminated)
