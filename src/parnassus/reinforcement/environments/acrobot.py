"""Two links hanging from a bar, moved at the joint between them: swing the foot above the bar (Sutton 1996)."""

from dataclasses import dataclass
from math import pi

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.environments.interface import Discrete
from parnassus.reinforcement.environments.simulated import Move


@dataclass(frozen=True)
class Acrobot:
    """State (θ₁, θ₂, θ̇₁, θ̇₂), a torque of −1, 0 or 1 at the second joint; −1 a step until the foot is a link above.

    Links have length, mass and moment of inertia 1 and their centres at ½. What is seen are the cosines and sines of
    the angles and the speeds. One Runge-Kutta step of 1/5 s; the equations are those of the original paper, as in
    gymnasium's Acrobot-v1, number by number.
    """

    longest: int = 500
    features = 6
    actions = Discrete(3)
    gravity, centre, inertia, seconds = 9.8, 0.5, 1.0, 0.2
    fastest = (4 * pi, 9 * pi)

    def start(self, copies: int, device: torch.device) -> Float[Tensor, "copies 4"]:
        return torch.empty(copies, 4, dtype=torch.float64, device=device).uniform_(-0.1, 0.1)

    def observe(self, state: Float[Tensor, "copies 4"]) -> Float[Tensor, "copies 6"]:
        first, second, first_speed, second_speed = state.unbind(1)
        return torch.stack([first.cos(), first.sin(), second.cos(), second.sin(), first_speed, second_speed], 1)

    def move(self, state: Float[Tensor, "copies 4"], action: Int[Tensor, " copies"]) -> Move:
        torque, h = (action - 1).to(state), self.seconds
        k1 = self.rate(state, torque)
        k2 = self.rate(state + h / 2 * k1, torque)
        k3 = self.rate(state + h / 2 * k2, torque)
        k4 = self.rate(state + h * k3, torque)
        moved = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        angles = [wrapped(angle) for angle in moved[:, :2].unbind(1)]
        speeds = [speed.clamp(-most, most) for speed, most in zip(moved[:, 2:].unbind(1), self.fastest, strict=True)]
        above = -angles[0].cos() - (angles[1] + angles[0]).cos() > 1.0
        return Move(torch.stack([*angles, *speeds], 1), above.to(state) - 1, above)

    def rate(self, state: Float[Tensor, "copies 4"], torque: Float[Tensor, " copies"]) -> Float[Tensor, "copies 4"]:
        """(θ̇₁, θ̇₂, θ̈₁, θ̈₂), from the energy of both links."""
        first, second, turning, bending = state.unbind(1)
        g, c, cosine, sine = self.gravity, self.centre, second.cos(), second.sin()
        d1 = c**2 + (1 + c**2 + 2 * c * cosine) + 2 * self.inertia
        d2 = c**2 + c * cosine + self.inertia
        weight2 = c * g * (first + second - pi / 2).cos()
        weight1 = (
            -c * bending.square() * sine
            - 2 * c * bending * turning * sine
            + (c + 1) * g * (first - pi / 2).cos()
            + weight2
        )
        bend = (torque + d2 / d1 * weight1 - c * turning.square() * sine - weight2) / (
            c**2 + self.inertia - d2.square() / d1
        )
        return torch.stack([turning, bending, -(d2 * bend + weight1) / d1, bend], 1)


def wrapped(angle: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The same angle between −π and π, by whole turns."""
    turns = torch.where(angle > pi, -((angle - pi) / (2 * pi)).ceil(), ((-angle - pi) / (2 * pi)).ceil().clamp(min=0))
    return angle + 2 * pi * turns
