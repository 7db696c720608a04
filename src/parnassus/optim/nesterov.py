"""Nesterov's acceleration: step from a point ahead of where the last step led (book sec. 3.2)."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad
from torch.optim.optimizer import ParamsT

from parnassus.optim.gradient_descent import Loss, gradient_step
from parnassus.optim.groupwise import Group, GroupwiseOptimizer, with_l2
from parnassus.optim.momentum import Momentum


class Accelerated(NamedTuple):
    """The two sequences of the method, from t = 0 on."""

    w: Float[Tensor, "path *shape"]  # where gradients are taken
    phi: Float[Tensor, "path *shape"]  # where the steps lead, and of which the theorem speaks


def nesterov_descent(
    loss: Loss, start: Float[Tensor, "*shape"], *, rate: float, steps: int, damping: float = 3.0
) -> Accelerated:
    """Both paths of Nesterov's acceleration with damping r, the start included (book eqs. 3.29-3.30).

    φ⁽ᵗ⁺¹⁾ = w⁽ᵗ⁾ − γ ∇f(w⁽ᵗ⁾),   φ⁽⁰⁾ = w⁽⁰⁾
    w⁽ᵗ⁺¹⁾ = φ⁽ᵗ⁺¹⁾ + t/(t + r) (φ⁽ᵗ⁺¹⁾ − φ⁽ᵗ⁾)
    """
    if not rate > 0 or not damping > 0:
        raise ValueError(f"need rate > 0 and damping > 0; got rate={rate}, damping={damping}")
    slope = grad(loss)
    w, phi = [start], [start]
    for t in range(steps):
        phi.append(gradient_step(w[-1], slope(w[-1]), rate))
        w.append(phi[-1] + t / (t + damping) * (phi[-1] - phi[-2]))
    return Accelerated(torch.stack(w), torch.stack(phi))


class Nesterov(GroupwiseOptimizer):
    """Nesterov's acceleration with its growing look-ahead t/(t + r); the parameters hold w (book eqs. 3.29-3.30).

    φ ← w − η g
    w ← φ + t/(t + r) (φ − φ_before),   t = 0, 1, …
    """

    def __init__(
        self, parameters: ParamsT, lr: float = 1e-3, *, damping: float = 3.0, weight_decay: float = 0.0
    ) -> None:
        super().__init__(parameters, {"lr": lr, "damping": damping, "weight_decay": weight_decay})

    def check(self, group: Group) -> None:
        super().check(group)
        if not group["damping"] > 0:
            raise ValueError(f"the damping must be positive; got damping={group['damping']}")

    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        gradient = with_l2(gradient, theta, group["weight_decay"])
        phi = self.remembered("phi", theta)
        torch._foreach_add_(theta, gradient, alpha=-group["lr"])  # θ is φ for a moment
        ahead = torch._foreach_lerp(phi, theta, [1 + (t - 1) / (t - 1 + group["damping"]) for t in self.counted(theta)])
        torch._foreach_copy_(phi, theta)
        torch._foreach_copy_(theta, ahead)


class NesterovMomentum(Momentum):
    """What torch calls Nesterov momentum: the velocity's share of the next step is taken at once (book sec. 3.2).

        v ← μ v + g,   v = 0 at first
        θ ← θ − η (g + μ v)

    The look-ahead is constant; t/(t + 3) is nowhere in it.
    """

    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        gradient = with_l2(gradient, theta, group["weight_decay"])
        velocity = self.accelerated(group, theta, gradient)
        torch._foreach_add_(theta, gradient, alpha=-group["lr"])
        torch._foreach_add_(theta, velocity, alpha=-group["lr"] * group["momentum"])
