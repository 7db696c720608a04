"""Claims about continuous flows: limit of residual steps, integral of traces, adjoint gradients (book sec. 13.1)."""

import torch
from torch import Tensor, nn
from torch.func import jacrev, vmap

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, rate
from parnassus.flows.flow import Chain, Flow, GaussianBase
from parnassus.flows.residual.continuous_flow import ContinuousTransform, TimeDependentField, dopri5_adjoint
from parnassus.flows.residual.residual_flow import InvertibleResidual
from parnassus.layers import mlp, tanh
from parnassus.probability import standard_normal


class EulerStep(nn.Module):
    """The branch g(z) = h f(z, t) of a residual step at time t."""

    def __init__(self, field: nn.Module, t: float, h: float) -> None:
        super().__init__()
        self.field, self.t, self.h = field, t, h

    def forward(self, z: Tensor) -> Tensor:
        step: Tensor = self.h * self.field(z, torch.tensor(self.t, dtype=z.dtype))
        return step


@claim("B13.1-13")
def residual_steps_converge_to_an_ode() -> Evidence:
    """The n maps z + f(z, k/n)/n converge to the flow of dz/dt = f, in state and log-determinant with order 1/n."""
    field, z = _field(), _sample_points()
    counts = [8, 16, 32, 64]
    with torch.no_grad():
        x, log_det = ContinuousTransform(field, tolerance=1e-9)(z)
        results = [Chain(InvertibleResidual(EulerStep(field, k / n, 1 / n)) for k in range(n))(z) for n in counts]
    state_errors = torch.stack([(state - x).norm(dim=1).mean() for state, _ in results])
    log_det_errors = torch.stack([(each - log_det).abs().mean() for _, each in results])
    return all_of(
        state=rate(torch.tensor(counts), state_errors, -1.0, atol=0.08),
        log_det=rate(torch.tensor(counts), log_det_errors, -1.0, atol=0.08),
    )


@claim("B13.1-13")
def the_log_determinant_is_the_integral_of_the_trace() -> Evidence:
    """∫ tr ∂f/∂z dt along a trajectory is the log-determinant of the map, and minus that of its inverse."""
    field, z = _field(), _sample_points()
    model = ContinuousTransform(field, tolerance=1e-8)
    with torch.no_grad():
        x, log_det = model(z)
        z_back, log_det_back = model.inverse(x)
    jacobian = _jacobian_by_midpoint_steps(field, z, steps=100)
    return all_of(
        log_det=close(log_det, torch.linalg.slogdet(jacobian).logabsdet, atol=2e-4),
        log_det_is_not_zero=greater_equal(log_det.abs().max(), 0.1),
        inverse=close(z_back, z, atol=1e-6),
        inverse_log_det=close(log_det_back, -log_det, atol=1e-6),
    )


@claim("B13.1-13")
def the_tolerance_bounds_the_round_trip_error() -> Evidence:
    """The round-trip error decreases with the tolerance and is at most a hundred times it."""
    field, z = _field(), _sample_points()
    tolerances = torch.tensor([1e-3, 1e-5, 1e-7], dtype=torch.float64)
    errors = []
    with torch.no_grad():
        for tolerance in tolerances.tolist():
            model = ContinuousTransform(field, tolerance=tolerance)
            errors.append((model.inverse(model(z)[0])[0] - z).abs().max())
    return all_of(
        bounded=less_equal(torch.stack(errors), 100 * tolerances),
        decreasing=less_equal(torch.stack(errors).diff(), 0.0),
    )


@claim("B13.1-13")
def the_adjoint_equation_gives_the_same_gradient() -> Evidence:
    """The adjoint equation gives the gradient of backpropagation through the solver."""
    flow = Flow(ContinuousTransform(_field(), tolerance=1e-8), GaussianBase((2,)).double())
    adjoint = Flow(ContinuousTransform(_field(), tolerance=1e-8, solver=dopri5_adjoint), GaussianBase((2,)).double())
    gradients = [
        torch.autograd.grad(model.loss(_sample_points()), list(model.parameters())) for model in (flow, adjoint)
    ]
    direct, adjoint_gradient = (torch.cat([part.flatten() for part in parts]) for parts in gradients)
    return all_of(
        same_gradient=close(adjoint_gradient, direct, atol=1e-6),
        gradient_is_not_zero=greater_equal(direct.abs().max(), 1e-2),
    )


def _field() -> TimeDependentField:
    torch.manual_seed(0)
    network = mlp((3, 16, 2), activation=tanh).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(2)
    return TimeDependentField(network)


def _sample_points() -> Tensor:
    return standard_normal(6, 2, seed=1)


def _jacobian_by_midpoint_steps(field: TimeDependentField, z: Tensor, *, steps: int) -> Tensor:
    """The Jacobian of the final state by the initial one, as a product over midpoint steps (independent check)."""
    h, jacobian = 1 / steps, torch.eye(2, dtype=z.dtype).expand(len(z), 2, 2)
    for k in range(steps):
        middle = torch.tensor((k + 0.5) * h, dtype=z.dtype)

        def move(row: Tensor, t: Tensor = middle) -> Tensor:
            result: Tensor = row + h * field((row + h / 2 * field(row[None], t)[0])[None], t)[0]
            return result

        with torch.no_grad():
            jacobian = vmap(jacrev(move))(z) @ jacobian
            z = vmap(move)(z)
    return jacobian
