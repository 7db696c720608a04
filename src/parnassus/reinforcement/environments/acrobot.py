"""Acrobot: swing a two-link pendulum up by a torque at the joint between the links (Sutton 1996)."""

from dataclasses import dataclass
from math import pi

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.optim.continuous_time.runge_kutta import rk4_step
from parnassus.reinforcement.environments.interface import Discrete
from parnassus.reinforcement.environments.tensor_environments import DynamicsStep


@dataclass(frozen=True)
class Acrobot:
    """State (θ₁, θ₂, θ̇₁, θ̇₂), torque −1, 0 or 1; reward −1 per step until the tip is one link up.

    The torque acts at the second joint. Links have length, mass and moment of inertia 1 and their centres at ½.
    Observations are the cosines and sines of the angles and the angular velocities. One Runge-Kutta step of 1/5 s; the
    equations of the original paper, with exactly the values of Gymnasium's Acrobot-v1.
    """

    max_episode_steps: int = 500
    features = 6
    actions = Discrete(3)
    gravity, centre, inertia, seconds = 9.8, 0.5, 1.0, 0.2
    max_speeds = (4 * pi, 9 * pi)

    def sample_initial_states(self, n_envs: int, device: torch.device) -> Float[Tensor, "envs 4"]:
        return torch.empty(n_envs, 4, dtype=torch.float64, device=device).uniform_(-0.1, 0.1)

    def observe(self, state: Float[Tensor, "envs 4"]) -> Float[Tensor, "envs 6"]:
        first, second, first_speed, second_speed = state.unbind(1)
        return torch.stack([first.cos(), first.sin(), second.cos(), second.sin(), first_speed, second_speed], 1)

    def step(self, state: Float[Tensor, "envs 4"], action: Int[Tensor, " envs"]) -> DynamicsStep:
        torque = (action - 1).to(state)
        unbounded = rk4_step(lambda state, _: self.time_derivative(state, torque), state, 0.0, self.seconds)
        angles = [wrap_angle(angle) for angle in unbounded[:, :2].unbind(1)]
        speeds = [s.clamp(-limit, limit) for s, limit in zip(unbounded[:, 2:].unbind(1), self.max_speeds, strict=True)]
        terminated = -angles[0].cos() - (angles[1] + angles[0]).cos() > 1.0
        return DynamicsStep(torch.stack([*angles, *speeds], 1), terminated.to(state) - 1, terminated)

    def time_derivative(
        self, state: Float[Tensor, "envs 4"], torque: Float[Tensor, " envs"]
    ) -> Float[Tensor, "envs 4"]:
        """(θ̇₁, θ̇₂, θ̈₁, θ̈₂), by the equations of motion of both links."""
        first, second, first_speed, second_speed = state.unbind(1)
        g, c, cosine, sine = self.gravity, self.centre, second.cos(), second.sin()
        d1 = c**2 + (1 + c**2 + 2 * c * cosine) + 2 * self.inertia
        d2 = c**2 + c * cosine + self.inertia
        phi2 = c * g * (first + second - pi / 2).cos()
        phi1 = (
            -c * second_speed.square() * sine
            - 2 * c * second_speed * first_speed * sine
            + (c + 1) * g * (first - pi / 2).cos()
            + phi2
        )
        second_acceleration = (torque + d2 / d1 * phi1 - c * first_speed.square() * sine - phi2) / (
            c**2 + self.inertia - d2.square() / d1
        )
        first_acceleration = -(d2 * second_acceleration + phi1) / d1
        return torch.stack([first_speed, second_speed, first_acceleration, second_acceleration], 1)


def wrap_angle(angle: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The same angle in [−π, π], by adding multiples of 2π."""
    turns = torch.where(angle > pi, -((angle - pi) / (2 * pi)).ceil(), ((-angle - pi) / (2 * pi)).ceil().clamp(min=0))
    return angle + 2 * pi * turns
