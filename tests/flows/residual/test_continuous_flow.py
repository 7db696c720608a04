import sys
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.func import jacrev, vmap

from parnassus.flows import Flow, GaussianBase, Invertible
from parnassus.flows.residual.continuous_flow import ContinuousTransform, TimeDependentField, dopri5_adjoint
from parnassus.flows.residual.jacobian_traces import rademacher_directions
from parnassus.layers import mlp, tanh


class LinearField(nn.Module):
    """dz/dt = A z, solved by the matrix exponential."""

    def __init__(self, matrix: Tensor) -> None:
        super().__init__()
        self.matrix = nn.Parameter(matrix)

    def forward(self, z: Tensor, t: Tensor) -> Tensor:
        return z @ self.matrix.mT


class TimeField(nn.Module):
    """dz/dt = 2 t z, so that z(t) = z(0) exp(t²)."""

    def forward(self, z: Tensor, t: Tensor) -> Tensor:
        return 2 * t * z


def smooth_transform(tolerance: float = 1e-9) -> ContinuousTransform:
    torch.manual_seed(0)
    network = mlp((4, 16, 3), activation=tanh).double()
    return ContinuousTransform(TimeDependentField(network), tolerance=tolerance)


def test_linear_field_matches_the_matrix_exponential() -> None:
    torch.manual_seed(0)
    matrix, z = torch.randn(3, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    model = ContinuousTransform(LinearField(matrix), tolerance=1e-10)
    assert isinstance(model, Invertible)
    x, log_det = model(z)
    torch.testing.assert_close(x, z @ torch.matrix_exp(matrix).mT, rtol=0, atol=1e-7)
    torch.testing.assert_close(log_det, matrix.trace().expand(5), rtol=0, atol=1e-8)


def test_time_dependent_field_matches_closed_form() -> None:
    z = torch.tensor([[1.0], [-2.0]], dtype=torch.float64)
    model = ContinuousTransform(TimeField(), tolerance=1e-9)
    times = (0.0, 0.5, 1.0)
    expected = torch.stack([z * torch.tensor(t**2).double().exp() for t in times])
    torch.testing.assert_close(model.path(z, times), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(model(z)[1], torch.ones(2, dtype=torch.float64), rtol=0, atol=1e-6)


def test_log_determinant_matches_autograd() -> None:
    model, z = smooth_transform(), torch.randn(4, 3, dtype=torch.float64)
    with torch.no_grad():
        x, log_det = model(z)
        z_back, log_det_back = model.inverse(x)
    torch.testing.assert_close(z_back, z, rtol=0, atol=1e-6)
    torch.testing.assert_close(log_det_back, -log_det, rtol=0, atol=1e-6)
    field = model.field
    step, jacobian = 1 / 200, torch.eye(3, dtype=torch.float64).expand(4, 3, 3)
    for k in range(200):  # reference: product of the Jacobians of 200 midpoint steps
        middle = torch.tensor((k + 0.5) * step, dtype=torch.float64)

        def midpoint_step(row: Tensor, t: Tensor = middle) -> Tensor:
            half = row + step / 2 * field(row[None], t)[0]
            end: Tensor = row + step * field(half[None], t)[0]
            return end

        jacobian = vmap(jacrev(midpoint_step))(z) @ jacobian
        z = vmap(midpoint_step)(z)
    torch.testing.assert_close(x, z, rtol=0, atol=1e-4)
    torch.testing.assert_close(log_det, torch.linalg.slogdet(jacobian).logabsdet, rtol=0, atol=1e-4)


def test_adjoint_gradient_matches_backpropagation() -> None:
    model, x = smooth_transform(), torch.randn(6, 3, dtype=torch.float64)
    flow = Flow(model, GaussianBase((3,)))
    direct = torch.autograd.grad(flow.loss(x), list(flow.parameters()))
    model.solver = dopri5_adjoint
    adjoint = torch.autograd.grad(flow.loss(x), list(flow.parameters()))
    for direct_gradient, adjoint_gradient in zip(direct, adjoint, strict=True):
        torch.testing.assert_close(direct_gradient, adjoint_gradient, rtol=1e-5, atol=1e-7)


def test_random_signs_estimate_the_density_without_bias() -> None:
    model = smooth_transform(1e-6)
    z = torch.randn(1, 3, dtype=torch.float64)
    with torch.no_grad():
        _, expected = model(z)
        model.directions = rademacher_directions
        _, estimates = model(z.expand(4_000, 3))
        model.directions = partial(rademacher_directions, count=4)
        _, averaged_estimates = model(z.expand(4_000, 3))
    assert float((estimates.mean() - expected).abs()) < 4 * float(estimates.std() / len(estimates) ** 0.5)
    assert float(estimates.std()) > 1e-3
    torch.testing.assert_close(averaged_estimates.std(), estimates.std() / 2, rtol=0.1, atol=0)


def test_density_integrates_to_one() -> None:
    torch.manual_seed(0)
    flow = Flow(ContinuousTransform(TimeDependentField(mlp((3, 16, 2), activation=tanh))), GaussianBase((2,)))
    axis = torch.linspace(-7, 7, 101)
    with torch.no_grad():
        total = flow.log_prob(torch.cartesian_prod(axis, axis)).exp().sum() * (axis[1] - axis[0]) ** 2
    torch.testing.assert_close(total, torch.tensor(1.0), rtol=0, atol=1e-3)


def test_invalid_arguments_raise_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"inside \(0, 1\); got tolerance=0"):
        ContinuousTransform(TimeField(), tolerance=0.0)
    with pytest.raises(ValueError, match=r"at least two values; got times=\(0.0,\)"):
        ContinuousTransform(TimeField()).path(torch.ones(2, 1), (0.0,))
    monkeypatch.setitem(sys.modules, "torchdiffeq", None)
    with pytest.raises(ImportError, match=r"needs torchdiffeq: pip install 'parnassus\[ode\]'"):
        ContinuousTransform(TimeField())(torch.ones(2, 1))
