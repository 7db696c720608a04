"""Continuous flows: points carried by an ordinary differential equation (Chen et al. 2018; book sec. 13.1).

A residual step z + h f(z) repeated with ever smaller h becomes dz/dt = f(z, t); the product of determinants becomes an
integral of traces. Solving needs torchdiffeq, which comes with `pip install 'parnassus[ode]'`.
"""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.flows.traces import Directions, jacobian_trace, unit_directions, with_pullback

State: TypeAlias = tuple[Tensor, Tensor]
"""Where the examples are, and the logarithm of the volume change so far."""

Solver: TypeAlias = Callable[[nn.Module, State, Tensor, float], State]
"""Dynamics called with (t, state), a state at the first time, times and a tolerance in; states at all times out."""


def dopri5(dynamics: nn.Module, start: State, times: Float[Tensor, " times"], tolerance: float) -> State:
    """Dormand and Prince's method of order 5, with steps as long as the tolerance lets them be.

    The tolerance is that of a step, relative and absolute, in the mean over a batch. Gradients go back through the
    steps that were taken, and are those of the computed solution.
    """
    states: State = torchdiffeq_module().odeint(dynamics, start, times, rtol=tolerance, atol=tolerance, method="dopri5")
    return states


def dopri5_adjoint(dynamics: nn.Module, start: State, times: Float[Tensor, " times"], tolerance: float) -> State:
    """The same, with gradients from a second equation solved backwards in time: slower, and no step is remembered."""
    states: State = torchdiffeq_module().odeint_adjoint(
        dynamics, start, times, rtol=tolerance, atol=tolerance, method="dopri5"
    )
    return states


class TimeField(nn.Module):
    """A field f(z, t) made of a network of one more input: the time stands behind the coordinates."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, z: Float[Tensor, "batch features"], t: Float[Tensor, ""]) -> Float[Tensor, "batch features"]:
        moved: Tensor = self.network(torch.cat([z, t.expand(len(z), 1)], 1))
        return moved


class ContinuousTransform(nn.Module):
    """x = z(1) where dz/dt = f(z, t) and z(0) = z; the inverse integrates back (Chen et al. 2018).

        log |det ∂z(1)/∂z(0)| = ∫₀¹ tr (∂f/∂z)(z(t), t) dt

    Any smooth `field(z, t)` serves: paths cannot cross, so the map is invertible with no condition on the network.
    The trace is exact with `unit_directions` and estimated with `random_signs`, drawn once for each solution. Errors
    are those of the solver, about `tolerance`.
    """

    def __init__(
        self,
        field: nn.Module,
        *,
        directions: Directions = unit_directions,
        solver: Solver = dopri5,
        tolerance: float = 1e-5,
    ) -> None:
        super().__init__()
        if not 0 < tolerance < 1:
            raise ValueError(f"the tolerance must lie inside (0, 1); got tolerance={tolerance}")
        self.field = field
        self.directions = directions
        self.solver = solver
        self.tolerance = tolerance

    def forward(
        self, z: Float[Tensor, "batch *event"]
    ) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
        return self._integrate(z, 0.0, 1.0)

    def inverse(
        self, x: Float[Tensor, "batch *event"]
    ) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
        return self._integrate(x, 1.0, 0.0)

    def path(self, z: Float[Tensor, "batch *event"], times: Sequence[float]) -> Float[Tensor, "times batch *event"]:
        """Where the examples are at these times, the first of which is when they are at z."""
        return self._solve(z, times)[0]

    def _integrate(self, z: Tensor, start: float, end: float) -> State:
        places, log_dets = self._solve(z, (start, end))
        return places[-1], log_dets[-1]

    def _solve(self, z: Tensor, times: Sequence[float]) -> State:
        if len(times) < 2:
            raise ValueError(f"a path needs a time to begin and one to end; got times={tuple(times)}")
        dynamics = _Dynamics(self.field, self.directions(z))
        moments = torch.tensor(times, dtype=z.dtype, device=z.device)
        return self.solver(dynamics, (z, z.new_zeros(len(z))), moments, self.tolerance)


class _Dynamics(nn.Module):
    """The field and its trace side by side, as the solver wants them."""

    def __init__(self, field: nn.Module, directions: Tensor) -> None:
        super().__init__()
        self.field = field
        self.directions = directions

    def forward(self, t: Tensor, state: State) -> State:
        value, pull = with_pullback(lambda z: self.field(z, t), state[0])
        return value, jacobian_trace(pull, self.directions)


def torchdiffeq_module() -> ModuleType:
    """The library of solvers, or a sentence that says how to get it."""
    try:
        import torchdiffeq
    except ImportError:
        raise ImportError("this needs torchdiffeq: pip install 'parnassus[ode]'") from None
    found: ModuleType = torchdiffeq
    return found
