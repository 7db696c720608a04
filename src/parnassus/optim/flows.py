"""Descent in continuous time: the differential equations behind the methods (book sec. 3.2)."""

from collections.abc import Callable
from math import pi

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad

from parnassus.optim.gradient_descent import Loss

Field = Callable[[float, Tensor], Tensor]


def gradient_flow(
    loss: Loss, start: Float[Tensor, "*shape"], *, time: float, steps: int
) -> Float[Tensor, "path *shape"]:
    """w(s) at s = 0, …, `time` of the limit of descent with ever smaller rates (book eq. 3.31, ex. 3.1).

        dw/ds = −∇f(w),   as (w⁽ᵗ⁺¹⁾ − w⁽ᵗ⁾)/η = −∇f(w⁽ᵗ⁾) at time s = tη

    Solved by the classical Runge-Kutta method, so its own error is far below that of descent with the same steps.
    """
    slope = grad(loss)
    return _solve(lambda _, w: -slope(w), start, time, steps)


def nesterov_flow(
    loss: Loss, start: Float[Tensor, "*shape"], *, time: float, steps: int, damping: float = 3.0
) -> Float[Tensor, "path *shape"]:
    """w(s) at s = 0, …, `time` of the limit of Nesterov's method, at rest in the beginning (book eq. 3.32).

        w″ + (r/s) w′ = −∇f(w),   w(0) = w⁽⁰⁾, w′(0) = 0

    At s = 0 both terms on the left count: w′/s tends to w″, so w″(0) = −∇f(w⁽⁰⁾)/(1 + r).
    """
    _require_damping(damping)
    slope = grad(loss)

    def motion(s: float, state: Tensor) -> Tensor:
        w, velocity = state
        force = -slope(w)
        return torch.stack([velocity, force / (1 + damping) if s == 0 else force - damping / s * velocity])

    return _solve(motion, torch.stack([start, torch.zeros_like(start)]), time, steps)[:, 0]


def bowl_solution(
    s: Float[Tensor, "*times"], *, curvature: float = 1.0, damping: float = 3.0
) -> Float[Tensor, "*times"]:
    """Nesterov's equation solved for f = ½λw² from w(0) = 1, a Bessel function (book sec. 3.2).

        w(s) = Γ(ν + 1) (2/x)^ν J_ν(x),   x = √λ s,  ν = (r − 1)/2;   r = 3: 2 J₁(x)/x
             = ∫ cos(x sin θ) cos^{r−1}θ dθ / ∫ cos^{r−1}θ dθ  over |θ| ≤ π/2

    The second line, Poisson's integral, is what is computed, with nodes enough for x below about 200.
    """
    _require_damping(damping)
    node, weight = np.polynomial.legendre.leggauss(240)
    theta = torch.as_tensor(node * pi / 2, dtype=s.dtype, device=s.device)
    mass = torch.as_tensor(weight, dtype=s.dtype, device=s.device) * theta.cos() ** (damping - 1)
    x = curvature**0.5 * s
    waves: Tensor = (x[..., None] * theta.sin()).cos() @ mass
    return waves / mass.sum()


def _solve(field: Field, start: Tensor, time: float, steps: int) -> Tensor:
    """The classical Runge-Kutta method of order 4 for dy/ds = field(s, y)."""
    if not time > 0 or steps < 1:
        raise ValueError(f"need time > 0 and steps ≥ 1; got time={time}, steps={steps}")
    h = time / steps
    path = [start]
    for step in range(steps):
        s, y = step * h, path[-1]
        first = field(s, y)
        second = field(s + h / 2, y + h / 2 * first)
        third = field(s + h / 2, y + h / 2 * second)
        fourth = field(s + h, y + h * third)
        path.append(y + h / 6 * (first + 2 * second + 2 * third + fourth))
    return torch.stack(path)


def _require_damping(damping: float) -> None:
    if not damping >= 1:
        raise ValueError(f"need damping ≥ 1; got damping={damping}")
