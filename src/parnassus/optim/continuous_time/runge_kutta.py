"""The classical Runge-Kutta method of order 4."""

from collections.abc import Callable
from typing import TypeVar

from jaxtyping import Float
from torch import Tensor

Time = TypeVar("Time", float, Tensor)


def rk4_step(
    field: Callable[[Tensor, Time], Tensor], x: Float[Tensor, "*shape"], t: Time, h: Time
) -> Float[Tensor, "*shape"]:
    """One step x(t) → x(t + h) of the Runge-Kutta method of order 4 for dx/dt = v(x, t), v = `field`.

    k₁ = v(x, t),   k₂ = v(x + ½h k₁, t + ½h),   k₃ = v(x + ½h k₂, t + ½h),   k₄ = v(x + h k₃, t + h)
    x(t + h) = x + ⅙h (k₁ + 2k₂ + 2k₃ + k₄)
    """
    k1 = field(x, t)
    k2 = field(x + h / 2 * k1, t + h / 2)
    k3 = field(x + h / 2 * k2, t + h / 2)
    k4 = field(x + h * k3, t + h)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
