"""Continuous normalising flows: neural ordinary differential equations (Chen et al. 2018; book sec. 13.1).

In the limit h → 0, residual steps z + h f(z) become dz/dt = f(z, t), and the product of determinants becomes an
integral of traces. Solving needs torchdiffeq: `pip install 'parnassus[ode]'`.
"""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.errors import MissingExtraError
from parnassus.flows.residual.jacobian_traces import Directions, jacobian_trace, unit_directions, value_and_vjp

State: TypeAlias = tuple[Tensor, Tensor]
"""The states of the examples, and the log-determinants accumulated so far."""

FlowSolver: TypeAlias = Callable[[nn.Module, State, Tensor, float], State]
"""(dynamics(t, state), initial state, times, tolerance) → states at all times."""


def dopri5(dynamics: nn.Module, start: State, times: Float[Tensor, " times"], tolerance: float) -> State:
    """The method of Dormand and Prince of order 5 with adaptive steps.

    The tolerance, relative and absolute, is that of a step, in the mean over a batch. Gradients are backpropagated
    through the steps of the solver.
    """
    states: State = import_torchdiffeq().odeint(dynamics, start, times, rtol=tolerance, atol=tolerance, method="dopri5")
    return states


def dopri5_adjoint(dynamics: nn.Module, start: State, times: Float[Tensor, " times"], tolerance: float) -> State:
    """`dopri5` with gradients from the adjoint equation: slower, but with constant memory."""
    states: State = import_torchdiffeq().odeint_adjoint(
        dynamics, start, times, rtol=tolerance, atol=tolerance, method="dopri5"
    )
    return states


class TimeDependentField(nn.Module):
    """A vector field f(z, t) given by a network with the time as an additional last input.

    >>> TimeDependentField(nn.Linear(3, 2))(torch.zeros(5, 2), torch.tensor(0.5)).shape
    torch.Size([5, 2])
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, z: Float[Tensor, "batch features"], t: Float[Tensor, ""]) -> Float[Tensor, "batch features"]:
        velocity: Tensor = self.network(torch.cat([z, t.expand(len(z), 1)], 1))
        return velocity


class ContinuousTransform(nn.Module):
    """x = z(1) where dz/dt = f(z, t) and z(0) = z; the inverse integrates back (Chen et al. 2018).

        log |det ∂z(1)/∂z(0)| = ∫₀¹ tr (∂f/∂z)(z(t), t) dt

    Any smooth `field(z, t)` defines an invertible map, since trajectories cannot cross. The trace is exact with
    `unit_directions` and estimated with `rademacher_directions`, sampled once per solution. The error is that of the
    solver, about `tolerance`.

    >>> transform = ContinuousTransform(TimeDependentField(nn.Linear(3, 2)))
    >>> transform(torch.zeros(5, 2))[0].shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        field: nn.Module,
        *,
        directions: Directions = unit_directions,
        solver: FlowSolver = dopri5,
        tolerance: float = 1e-5,
    ) -> None:
        super().__init__()
        if not 0 < tolerance < 1:
            raise ValueError(f"tolerance must lie inside (0, 1); got tolerance={tolerance}")
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
        """The states of the examples at the given times; z is the state at the first."""
        return self._solve(z, times)[0]

    def _integrate(self, z: Tensor, start: float, end: float) -> State:
        states, log_dets = self._solve(z, (start, end))
        return states[-1], log_dets[-1]

    def _solve(self, z: Tensor, times: Sequence[float]) -> State:
        if len(times) < 2:
            raise ValueError(f"times must have at least two values; got times={tuple(times)}")
        dynamics = _Dynamics(self.field, self.directions(z))
        time_points = torch.tensor(times, dtype=z.dtype, device=z.device)
        return self.solver(dynamics, (z, z.new_zeros(len(z))), time_points, self.tolerance)


class _Dynamics(nn.Module):
    """The field and the trace of its Jacobian, as one system for the solver."""

    def __init__(self, field: nn.Module, directions: Tensor) -> None:
        super().__init__()
        self.field = field
        self.directions = directions

    def forward(self, t: Tensor, state: State) -> State:
        value, vjp = value_and_vjp(lambda z: self.field(z, t), state[0])
        return value, jacobian_trace(vjp, self.directions)


def import_torchdiffeq() -> ModuleType:
    """Import torchdiffeq, or raise an error with the install command."""
    try:
        import torchdiffeq
    except ImportError:
        raise MissingExtraError("this needs torchdiffeq: pip install 'parnassus[ode]'") from None
    module: ModuleType = torchdiffeq
    return module
