"""Momentum: gradient descent along an exponentially decaying sum of past gradients (book sec. 3.2)."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad
from torch.optim.optimizer import ParamsT

from parnassus.optim.optimisers.foreach_optimizer import ForeachOptimizer, Group, add_l2
from parnassus.optim.optimisers.gradient_descent import Loss, gradient_step


class Momentum(ForeachOptimizer):
    """SGD with momentum μ (heavy ball), as in torch (book eqs. 3.27-3.28, corrected).

    v ← μ v + g,   v = 0 initially
    θ ← θ − η v

    >>> theta = nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = Momentum([theta], lr=0.1, momentum=0.5)
    >>> theta.square().sum().backward()
    >>> optimizer.step()
    >>> round(theta.item(), 4)
    0.8
    """

    def __init__(
        self, parameters: ParamsT, lr: float = 1e-3, *, momentum: float = 0.9, weight_decay: float = 0.0
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    def check_group(self, group: Group) -> None:
        super().check_group(group)
        if not 0 <= group["momentum"] < 1:
            raise ValueError(f"the momentum must satisfy 0 ≤ μ < 1; got momentum={group['momentum']}")

    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        velocity = self.update_velocity(group, theta, add_l2(gradient, theta, group["weight_decay"]))
        torch._foreach_add_(theta, velocity, alpha=-group["lr"])

    def update_velocity(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> list[Tensor]:
        """Update the velocities in place to μ v + g, and return them."""
        velocity = self.state_tensors("velocity", theta)
        if theta[0].is_cpu:  # one pass over memory instead of two; on a GPU two kernels for the whole list are faster
            for v, g in zip(velocity, gradient, strict=True):
                torch.add(g, v, alpha=group["momentum"], out=v)
        else:
            torch._foreach_mul_(velocity, group["momentum"])
            torch._foreach_add_(velocity, gradient)
        return velocity


def heavy_ball(
    loss: Loss, start: Float[Tensor, "*shape"], *, learning_rate: float, momentum: float, steps: int
) -> Float[Tensor, "path *shape"]:
    """Iterates θ⁽⁰⁾, …, θ⁽ˢᵗᵉᵖˢ⁾ of gradient descent with momentum μ (book eqs. 3.27-3.28).

        φ⁽ᵗ⁺¹⁾ = μ φ⁽ᵗ⁾ + ∇ℓ(θ⁽ᵗ⁾),   φ⁽⁰⁾ = 0
        θ⁽ᵗ⁺¹⁾ = θ⁽ᵗ⁾ − η φ⁽ᵗ⁺¹⁾

    As printed the velocity is not damped, and on a quadratic it oscillates indefinitely. μ = 0 is gradient descent.
    """
    _check_hyperparameters(learning_rate, momentum)
    gradient = grad(loss)
    path, velocity = [start], torch.zeros_like(start)
    for _ in range(steps):
        velocity = momentum * velocity + gradient(path[-1])
        path.append(gradient_step(path[-1], velocity, learning_rate))
    return torch.stack(path)


def moving_average_momentum(
    loss: Loss, start: Float[Tensor, "*shape"], *, learning_rate: float, momentum: float, steps: int
) -> Float[Tensor, "path *shape"]:
    """Iterates of momentum whose velocity is an exponential moving average of gradients (Diehl sec. 1.5).

        v_{t+1} = β v_t + (1 − β) ∇C(θ_t),   v_0 = 0
        θ_{t+1} = θ_t − η v_{t+1}

    Equals `heavy_ball` with the learning rate η (1 − β). As printed θ moves by v_t, one gradient late.
    """
    _check_hyperparameters(learning_rate, momentum)
    gradient = grad(loss)
    path, velocity = [start], torch.zeros_like(start)
    for _ in range(steps):
        velocity = momentum * velocity + (1 - momentum) * gradient(path[-1])
        path.append(gradient_step(path[-1], velocity, learning_rate))
    return torch.stack(path)


def max_stable_rate(curvature: float, momentum: float = 0.0) -> float:
    """2 (1 + μ) / β: above this rate momentum diverges on a quadratic with largest curvature β (book sec. 3.2)."""
    return 2 * (1 + momentum) / curvature


def convergence_factor(
    curvature: Float[Tensor, "*shape"], *, learning_rate: float, momentum: float = 0.0
) -> Float[Tensor, "*shape"]:
    """Asymptotic factor per step of the distance to the minimum, along a direction of this curvature.

        z² − (1 + μ − ηβ) z + μ = 0,   factor = max |z|

    Without momentum it is |1 − ηβ|; where the roots are complex it is √μ for every η (book sec. 3.2).
    """
    _check_hyperparameters(learning_rate, momentum)
    middle = 1 + momentum - learning_rate * curvature
    discriminant = middle.square() - 4 * momentum
    real = (middle.abs() + discriminant.clamp(min=0).sqrt()) / 2
    return torch.where(discriminant < 0, momentum**0.5, real)


def _check_hyperparameters(learning_rate: float, momentum: float) -> None:
    if not learning_rate > 0 or not 0 <= momentum < 1:
        raise ValueError(
            f"need learning_rate > 0 and 0 ≤ momentum < 1; got learning_rate={learning_rate}, momentum={momentum}"
        )
