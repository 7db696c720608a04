"""Claims about flows in continuous time: the limit of residual steps, the integral of the trace (book sec. 13.1)."""

import torch
from torch import Tensor, nn
from torch.func import jacrev, vmap

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close, rate
from parnassus.flows.continuous import ContinuousTransform, TimeField, dopri5_adjoint
from parnassus.flows.flow import Chain, Flow, GaussianBase
from parnassus.flows.residual import InvertibleResidual
from parnassus.layers import mlp, tanh


class EulerStep(nn.Module):
    """The branch g(z) = h f(z, t) of a residual step that starts at time t."""

    def __init__(self, field: nn.Module, t: float, h: float) -> None:
        super().__init__()
        self.field, self.t, self.h = field, t, h

    def forward(self, z: Tensor) -> Tensor:
        moved: Tensor = self.h * self.field(z, torch.tensor(self.t, dtype=z.dtype))
        return moved


@claim("B13.1-13")
def residual_steps_become_a_differential_equation() -> Evidence:
    """The n maps z + f(z, k/n)/n approach the flow of dz/dt = f with an error of order 1/n, in place and in volume."""
    field, z = _field(), _places()
    counts = [8, 16, 32, 64]
    with torch.no_grad():
        x, log_det = ContinuousTransform(field, tolerance=1e-9)(z)
        ends = [Chain(InvertibleResidual(EulerStep(field, k / n, 1 / n)) for k in range(n))(z) for n in counts]
    places = torch.stack([(end - x).norm(dim=1).mean() for end, _ in ends])
    volumes = torch.stack([(change - log_det).abs().mean() for _, change in ends])
    return all_of(
        place=rate(torch.tensor(counts), places, -1.0, atol=0.08),
        volume=rate(torch.tensor(counts), volumes, -1.0, atol=0.08),
    )


@claim("B13.1-13")
def the_volume_change_is_the_integral_of_the_trace() -> Evidence:
    """The integral of tr ∂f/∂z along a path is the log-determinant of the whole map, and minus that of its inverse."""
    field, z = _field(), _places()
    model = ContinuousTransform(field, tolerance=1e-8)
    with torch.no_grad():
        x, log_det = model(z)
        back, log_det_back = model.inverse(x)
    whole = _jacobian_by_small_steps(field, z, steps=100)
    return all_of(
        against_the_jacobian=close(log_det, torch.linalg.slogdet(whole).logabsdet, atol=2e-4),
        moves_something=at_least(log_det.abs().max(), 0.1),
        back_to_the_start=close(back, z, atol=1e-6),
        volume_undone=close(log_det_back, -log_det, atol=1e-6),
    )


@claim("B13.1-13")
def the_tolerance_sets_the_error_of_the_way_back() -> Evidence:
    """There and back misses the start by less the smaller the tolerance, and by no more than a hundred times it."""
    field, z = _field(), _places()
    tolerances = torch.tensor([1e-3, 1e-5, 1e-7], dtype=torch.float64)
    missed = []
    with torch.no_grad():
        for tolerance in tolerances.tolist():
            model = ContinuousTransform(field, tolerance=tolerance)
            missed.append((model.inverse(model(z)[0])[0] - z).abs().max())
    return all_of(
        bounded=at_most(torch.stack(missed), 100 * tolerances), falling=at_most(torch.stack(missed).diff(), 0.0)
    )


@claim("B13.1-13")
def the_adjoint_equation_gives_the_same_gradient() -> Evidence:
    """Solved backwards in time, the adjoint equation gives the gradient that goes back through every step."""
    flow = Flow(ContinuousTransform(_field(), tolerance=1e-8), GaussianBase((2,)).double())
    adjoint = Flow(ContinuousTransform(_field(), tolerance=1e-8, solver=dopri5_adjoint), GaussianBase((2,)).double())
    slopes = [torch.autograd.grad(model.loss(_places()), list(model.parameters())) for model in (flow, adjoint)]
    direct, second = (torch.cat([part.flatten() for part in parts]) for parts in slopes)
    return all_of(same=close(second, direct, atol=1e-6), not_zero=at_least(direct.abs().max(), 1e-2))


def _field() -> TimeField:
    torch.manual_seed(0)
    network = mlp((3, 16, 2), activation=tanh).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(2)
    return TimeField(network)


def _places() -> Tensor:
    return torch.randn(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _jacobian_by_small_steps(field: TimeField, z: Tensor, *, steps: int) -> Tensor:
    """The Jacobian of the end by the start, as a product over midpoint steps that no solver of ours took."""
    h, whole = 1 / steps, torch.eye(2, dtype=z.dtype).expand(len(z), 2, 2)
    for k in range(steps):
        middle = torch.tensor((k + 0.5) * h, dtype=z.dtype)

        def move(row: Tensor, t: Tensor = middle) -> Tensor:
            moved: Tensor = row + h * field((row + h / 2 * field(row[None], t)[0])[None], t)[0]
            return moved

        with torch.no_grad():
            whole = vmap(jacrev(move))(z) @ whole
            z = vmap(move)(z)
    return whole
