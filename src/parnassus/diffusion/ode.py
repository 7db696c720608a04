"""Ordinary differential equations dx/dt = v(x, t), solved over a grid of times that rise or fall.

A `Solver` is called with (field, start, times) and gives x at the last time: `euler`, `heun`, `rk4`, or `adaptive`,
which chooses its own steps.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.flows.continuous import torchdiffeq_module

TimedField: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""The velocity of a batch x at one time t."""
Solver: TypeAlias = Callable[[TimedField, Tensor, Tensor], Tensor]


def euler(
    field: TimedField, start: Float[Tensor, "batch *event"], times: Float[Tensor, " times"]
) -> Float[Tensor, "batch *event"]:
    """Euler's method x ← x + h v(x, t): order 1, one call a step."""
    x = start
    for t, h in _steps(times, x):
        x = x + h * field(x, t)
    return x


def heun(
    field: TimedField, start: Float[Tensor, "batch *event"], times: Float[Tensor, " times"]
) -> Float[Tensor, "batch *event"]:
    """Heun's method x ← x + ½ h (v(x, t) + v(x + h v(x, t), t + h)): order 2, two calls a step."""
    x = start
    for t, h in _steps(times, x):
        first = field(x, t)
        second = field(x + h * first, t + h)
        x = x + h / 2 * (first + second)
    return x


def rk4(
    field: TimedField, start: Float[Tensor, "batch *event"], times: Float[Tensor, " times"]
) -> Float[Tensor, "batch *event"]:
    """The classical Runge-Kutta method: order 4, four calls a step."""
    x = start
    for t, h in _steps(times, x):
        first = field(x, t)
        second = field(x + h / 2 * first, t + h / 2)
        third = field(x + h / 2 * second, t + h / 2)
        fourth = field(x + h * third, t + h)
        x = x + h / 6 * (first + 2 * second + 2 * third + fourth)
    return x


def adaptive(
    field: TimedField,
    start: Float[Tensor, "batch *event"],
    times: Float[Tensor, " times"],
    *,
    rtol: float = 1e-5,
    atol: float = 1e-5,
) -> Float[Tensor, "batch *event"]:
    """Dormand's and Prince's method with steps as long as the tolerances allow; only the ends of `times` count."""
    odeint = torchdiffeq_module().odeint
    _require(times)
    ends = torch.stack([times[0], times[-1]]).to(start)
    path: Tensor = odeint(lambda t, x: field(x, t), start, ends, rtol=rtol, atol=atol, method="dopri5")
    return path[-1]


def _steps(times: Tensor, x: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Each time with the step that follows it, in the type of x."""
    _require(times)
    return list(zip(times[:-1].to(x), times.diff().to(x), strict=True))


def _require(times: Tensor) -> None:
    steps = times.diff()
    if not len(steps) or not bool((steps > 0).all() or (steps < 0).all()):
        raise ValueError(f"times must rise or fall throughout, two at least; got times={times.tolist()[:10]}")
