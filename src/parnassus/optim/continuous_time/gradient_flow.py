"""Gradient flow and Nesterov's differential equation: gradient methods in continuous time (book sec. 3.2)."""

from collections.abc import Callable
from math import pi

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad

from parnassus.optim.continuous_time.runge_kutta import rk4_step
from parnassus.optim.optimisers.gradient_descent import Loss

TimeDependentVectorField = Callable[[Tensor, float], Tensor]


def gradient_flow(
    loss: Loss, start: Float[Tensor, "*shape"], *, time: float, steps: int
) -> Float[Tensor, "path *shape"]:
    """w(s) at s = 0, …, `time` of the limit of gradient descent as η → 0 (book eq. 3.31, ex. 3.1).

        dw/ds = −∇f(w),   as (w⁽ᵗ⁺¹⁾ − w⁽ᵗ⁾)/η = −∇f(w⁽ᵗ⁾) at time s = tη

    Solved by the classical Runge-Kutta method, whose error is far below that of gradient descent with as many steps.
    """
    gradient = grad(loss)
    return _integrate(lambda w, _: -gradient(w), start, time, steps)


def nesterov_flow(
    loss: Loss, start: Float[Tensor, "*shape"], *, time: float, steps: int, damping: float = 3.0
) -> Float[Tensor, "path *shape"]:
    """w(s) at s = 0, …, `time` of the limit of Nesterov's method as γ → 0 (book eq. 3.32).

        w″ + (r/s) w′ = −∇f(w),   w(0) = w⁽⁰⁾, w′(0) = 0

    As s → 0, w′/s converges to w″, hence w″(0) = −∇f(w⁽⁰⁾)/(1 + r).
    """
    _check_damping(damping)
    gradient = grad(loss)

    def field(state: Tensor, s: float) -> Tensor:
        w, velocity = state
        force = -gradient(w)
        return torch.stack([velocity, force / (1 + damping) if s == 0 else force - damping / s * velocity])

    return _integrate(field, torch.stack([start, torch.zeros_like(start)]), time, steps)[:, 0]


def quadratic_nesterov_flow(
    s: Float[Tensor, "*times"], *, curvature: float = 1.0, damping: float = 3.0
) -> Float[Tensor, "*times"]:
    """Solution of Nesterov's equation for f = ½λw² from w(0) = 1, a Bessel function (book sec. 3.2).

        w(s) = Γ(ν + 1) (2/x)^ν J_ν(x),   x = √λ s,  ν = (r − 1)/2;   r = 3: 2 J₁(x)/x
             = ∫ cos(x sin θ) cos^{r−1}θ dθ / ∫ cos^{r−1}θ dθ  over |θ| ≤ π/2

    Computed by Poisson's integral, the second line, by a quadrature that is accurate for x below about 200.
    """
    _check_damping(damping)
    node, weight = np.polynomial.legendre.leggauss(240)
    theta = torch.as_tensor(node * pi / 2, dtype=s.dtype, device=s.device)
    mass = torch.as_tensor(weight, dtype=s.dtype, device=s.device) * theta.cos() ** (damping - 1)
    x = curvature**0.5 * s
    integral: Tensor = (x[..., None] * theta.sin()).cos() @ mass
    return integral / mass.sum()


def _integrate(field: TimeDependentVectorField, start: Tensor, time: float, steps: int) -> Tensor:
    """The classical Runge-Kutta method of order 4 for dy/ds = field(y, s)."""
    if not time > 0 or steps < 1:
        raise ValueError(f"need time > 0 and steps ≥ 1; got time={time}, steps={steps}")
    h = time / steps
    path = [start]
    for step in range(steps):
        path.append(rk4_step(field, path[-1], step * h, h))
    return torch.stack(path)


def _check_damping(damping: float) -> None:
    if not damping >= 1:
        raise ValueError(f"need damping ≥ 1; got damping={damping}")
