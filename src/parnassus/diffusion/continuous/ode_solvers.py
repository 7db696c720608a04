"""Solvers of ordinary differential equations dx/dt = v(x, t) over increasing or decreasing times.

An `ODESolver` is called with (field, start, times) and returns x at the last time: `euler`, `heun`, `rk4`, or the
adaptive `dopri5`.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.diffusion.continuous.time_grids import check_monotone
from parnassus.flows.residual.continuous_flow import import_torchdiffeq
from parnassus.optim.continuous_time.runge_kutta import rk4_step

TimedField: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""The velocity of a batch x at one time t."""
ODESolver: TypeAlias = Callable[[TimedField, Tensor, Tensor], Tensor]


def euler(
    field: TimedField, start: Float[Tensor, "batch *event"], times: Float[Tensor, " times"]
) -> Float[Tensor, "batch *event"]:
    """Euler's method x ← x + h v(x, t), of order 1 with one call per step."""
    x = start
    for t, h in _steps(times, x):
        x = x + h * field(x, t)
    return x


def heun(
    field: TimedField, start: Float[Tensor, "batch *event"], times: Float[Tensor, " times"]
) -> Float[Tensor, "batch *event"]:
    """Heun's method x ← x + ½ h (v(x, t) + v(x + h v(x, t), t + h)), of order 2."""
    x = start
    for t, h in _steps(times, x):
        first = field(x, t)
        second = field(x + h * first, t + h)
        x = x + h / 2 * (first + second)
    return x


def rk4(
    field: TimedField, start: Float[Tensor, "batch *event"], times: Float[Tensor, " times"]
) -> Float[Tensor, "batch *event"]:
    """The classical Runge-Kutta method, of order 4 with four calls per step."""
    x = start
    for t, h in _steps(times, x):
        x = rk4_step(field, x, t, h)
    return x


def dopri5(
    field: TimedField,
    start: Float[Tensor, "batch *event"],
    times: Float[Tensor, " times"],
    *,
    rtol: float = 1e-5,
    atol: float = 1e-5,
) -> Float[Tensor, "batch *event"]:
    """The Dormand-Prince method with adaptive steps from the first to the last of the times."""
    odeint = import_torchdiffeq().odeint
    check_monotone(times)
    ends = torch.stack([times[0], times[-1]]).to(start)
    path: Tensor = odeint(lambda t, x: field(x, t), start, ends, rtol=rtol, atol=atol, method="dopri5")
    return path[-1]


def _steps(times: Tensor, x: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Each time with the step that follows it, in the dtype of x."""
    check_monotone(times)
    return list(zip(times[:-1].to(x), times.diff().to(x), strict=True))
