"""Nesterov's accelerated gradient: gradients are taken at an extrapolated point (book sec. 3.2)."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad
from torch.optim.optimizer import ParamsT

from parnassus.optim.optimisers.foreach_optimizer import ForeachOptimizer, Group, add_l2
from parnassus.optim.optimisers.gradient_descent import Loss, gradient_step
from parnassus.optim.optimisers.momentum import Momentum


class NesterovIterates(NamedTuple):
    """The two sequences of the method, from t = 0.

    >>> NesterovIterates(w=torch.zeros(3, 2), phi=torch.zeros(3, 2)).w.shape
    torch.Size([3, 2])
    """

    w: Float[Tensor, "path *shape"]  # extrapolated points, where gradients are taken
    phi: Float[Tensor, "path *shape"]  # gradient steps, whose values the theorem bounds


def nesterov_descent(
    loss: Loss, start: Float[Tensor, "*shape"], *, learning_rate: float, steps: int, damping: float = 3.0
) -> NesterovIterates:
    """Both sequences of Nesterov's method with damping r, the start included (book eqs. 3.29-3.30).

    φ⁽ᵗ⁺¹⁾ = w⁽ᵗ⁾ − γ ∇f(w⁽ᵗ⁾),   φ⁽⁰⁾ = w⁽⁰⁾
    w⁽ᵗ⁺¹⁾ = φ⁽ᵗ⁺¹⁾ + t/(t + r) (φ⁽ᵗ⁺¹⁾ − φ⁽ᵗ⁾)
    """
    if not learning_rate > 0 or not damping > 0:
        raise ValueError(
            f"need learning_rate > 0 and damping > 0; got learning_rate={learning_rate}, damping={damping}"
        )
    gradient = grad(loss)
    w, phi = [start], [start]
    for t in range(steps):
        phi.append(gradient_step(w[-1], gradient(w[-1]), learning_rate))
        w.append(phi[-1] + t / (t + damping) * (phi[-1] - phi[-2]))
    return NesterovIterates(torch.stack(w), torch.stack(phi))


class Nesterov(ForeachOptimizer):
    """Nesterov's method with momentum coefficient t/(t + r); the parameters hold w (book eqs. 3.29-3.30).

    φ ← w − η g
    w ← φ + t/(t + r) (φ − φ_before),   t = 0, 1, …

    >>> theta = nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = Nesterov([theta], lr=0.1)
    >>> theta.square().sum().backward()
    >>> optimizer.step()
    >>> round(theta.item(), 4)
    0.8
    """

    def __init__(
        self, parameters: ParamsT, lr: float = 1e-3, *, damping: float = 3.0, weight_decay: float = 0.0
    ) -> None:
        super().__init__(parameters, {"lr": lr, "damping": damping, "weight_decay": weight_decay})

    def check_group(self, group: Group) -> None:
        super().check_group(group)
        if not group["damping"] > 0:
            raise ValueError(f"the damping must be positive; got damping={group['damping']}")

    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        gradient = add_l2(gradient, theta, group["weight_decay"])
        phi = self.state_tensors("phi", theta)
        torch._foreach_add_(theta, gradient, alpha=-group["lr"])  # θ holds the new φ until it is extrapolated
        weights = [1 + (t - 1) / (t - 1 + group["damping"]) for t in self.increment_steps(theta)]
        extrapolated = torch._foreach_lerp(phi, theta, weights)
        torch._foreach_copy_(phi, theta)
        torch._foreach_copy_(theta, extrapolated)


class NesterovMomentum(Momentum):
    """Nesterov momentum as in torch, with a constant coefficient μ in place of t/(t + 3) (book sec. 3.2).

    v ← μ v + g,   v = 0 initially
    θ ← θ − η (g + μ v)

    >>> theta = nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = NesterovMomentum([theta], lr=0.1, momentum=0.5)
    >>> theta.square().sum().backward()
    >>> optimizer.step()
    >>> round(theta.item(), 4)
    0.7
    """

    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        gradient = add_l2(gradient, theta, group["weight_decay"])
        velocity = self.update_velocity(group, theta, gradient)
        torch._foreach_add_(theta, gradient, alpha=-group["lr"])
        torch._foreach_add_(theta, velocity, alpha=-group["lr"] * group["momentum"])
