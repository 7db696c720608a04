"""Momentum: descent that keeps a decaying sum of past gradients as its velocity (book sec. 3.2)."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad
from torch.optim.optimizer import ParamsT

from parnassus.optim.gradient_descent import Loss, gradient_step
from parnassus.optim.groupwise import Group, GroupwiseOptimizer, with_l2


class Momentum(GroupwiseOptimizer):
    """Gradient descent with momentum μ, as torch has it: the heavy ball (book eqs. 3.27-3.28, put right).

    v ← μ v + g,   v = 0 at first
    θ ← θ − η v
    """

    def __init__(
        self, parameters: ParamsT, lr: float = 1e-3, *, momentum: float = 0.9, weight_decay: float = 0.0
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    def check(self, group: Group) -> None:
        super().check(group)
        if not 0 <= group["momentum"] < 1:
            raise ValueError(f"the momentum must satisfy 0 ≤ μ < 1; got momentum={group['momentum']}")

    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        velocity = self.accelerated(group, theta, with_l2(gradient, theta, group["weight_decay"]))
        torch._foreach_add_(theta, velocity, alpha=-group["lr"])

    def accelerated(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> list[Tensor]:
        """The velocities μ v + g, which become those remembered."""
        velocity = self.remembered("velocity", theta)
        if theta[0].is_cpu:  # a pass where the lists below take two; on a GPU two kernels for all are quicker
            for v, g in zip(velocity, gradient, strict=True):
                torch.add(g, v, alpha=group["momentum"], out=v)
        else:
            torch._foreach_mul_(velocity, group["momentum"])
            torch._foreach_add_(velocity, gradient)
        return velocity


def heavy_ball(
    loss: Loss, start: Float[Tensor, "*shape"], *, rate: float, momentum: float, steps: int
) -> Float[Tensor, "path *shape"]:
    """θ⁽⁰⁾, …, θ⁽ˢᵗᵉᵖˢ⁾ of gradient descent with momentum μ, the start included (book eqs. 3.27-3.28).

        φ⁽ᵗ⁺¹⁾ = μ φ⁽ᵗ⁾ + ∇ℓ(θ⁽ᵗ⁾),   φ⁽⁰⁾ = 0
        θ⁽ᵗ⁺¹⁾ = θ⁽ᵗ⁾ − η φ⁽ᵗ⁺¹⁾

    As printed the velocity is not damped, and on a quadratic it swings for ever. μ = 0 is plain descent.
    """
    _require(rate, momentum)
    slope = grad(loss)
    path, velocity = [start], torch.zeros_like(start)
    for _ in range(steps):
        velocity = momentum * velocity + slope(path[-1])
        path.append(gradient_step(path[-1], velocity, rate))
    return torch.stack(path)


def averaged_momentum(
    loss: Loss, start: Float[Tensor, "*shape"], *, rate: float, momentum: float, steps: int
) -> Float[Tensor, "path *shape"]:
    """The same with a velocity that is a moving average of gradients, the start included (Diehl sec. 1.5).

        v_{t+1} = β v_t + (1 − β) ∇C(θ_t),   v_0 = 0
        θ_{t+1} = θ_t − η v_{t+1}

    It walks the path of `heavy_ball` at the rate η (1 − β). As printed θ moves by v_t, a gradient late.
    """
    _require(rate, momentum)
    slope = grad(loss)
    path, velocity = [start], torch.zeros_like(start)
    for _ in range(steps):
        velocity = momentum * velocity + (1 - momentum) * slope(path[-1])
        path.append(gradient_step(path[-1], velocity, rate))
    return torch.stack(path)


def largest_stable_rate(curvature: float, momentum: float = 0.0) -> float:
    """2 (1 + μ) / β: any larger rate leaves the minimum of a quadratic whose largest curvature is β (book sec. 3.2)."""
    return 2 * (1 + momentum) / curvature


def factor_per_step(
    curvature: Float[Tensor, "*shape"], *, rate: float, momentum: float = 0.0
) -> Float[Tensor, "*shape"]:
    """By what a step in the end multiplies the distance to the minimum, along a direction of this curvature.

        z² − (1 + μ − ηβ) z + μ = 0,   factor = max |z|

    Without momentum it is |1 − ηβ|; where the roots are complex it is √μ, whatever the rate (book sec. 3.2).
    """
    _require(rate, momentum)
    middle = 1 + momentum - rate * curvature
    discriminant = middle.square() - 4 * momentum
    real = (middle.abs() + discriminant.clamp(min=0).sqrt()) / 2
    return torch.where(discriminant < 0, momentum**0.5, real)


def _require(rate: float, momentum: float) -> None:
    if not rate > 0 or not 0 <= momentum < 1:
        raise ValueError(f"need rate > 0 and 0 ≤ momentum < 1; got rate={rate}, momentum={momentum}")
