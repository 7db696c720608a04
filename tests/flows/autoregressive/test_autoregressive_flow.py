"""Autoregressive flows: triangular Jacobians, numbers of passes, densities that integrate to one."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import jacrev

from parnassus.flows import (
    MADE,
    AffineSynthesizer,
    AutoregressiveTransform,
    Flow,
    GaussianBase,
    InverseTransform,
    RecurrentConditioner,
    SeparateConditioners,
    SplineSynthesizer,
    Synthesizer,
    inverse_autoregressive_flow,
    masked_autoregressive_flow,
)
from parnassus.layers import tanh

SYNTHESIZERS = [AffineSynthesizer(), SplineSynthesizer(bins=5, bound=3.0)]
CONDITIONERS: list[Callable[[int], nn.Module]] = [
    lambda size: MADE(4, size, hidden_sizes=(32,), activation=tanh),
    lambda size: SeparateConditioners(4, size, hidden_sizes=(8,), activation=tanh),
    lambda size: RecurrentConditioner(size, hidden_size=8),
]


class CountingConditioner(nn.Module):
    """A conditioner that counts its evaluations."""

    def __init__(self, conditioner: nn.Module) -> None:
        super().__init__()
        self.conditioner, self.passes = conditioner, 0

    def forward(self, z: Tensor) -> Tensor:
        self.passes += 1
        h: Tensor = self.conditioner(z)
        return h


@pytest.mark.parametrize("tau", SYNTHESIZERS)
@pytest.mark.parametrize("conditioner", CONDITIONERS)
def test_jacobian_is_triangular_and_log_determinant_matches_autograd(
    tau: Synthesizer, conditioner: Callable[[int], nn.Module]
) -> None:
    torch.manual_seed(0)
    flow = AutoregressiveTransform(conditioner(tau.size), tau).double()
    z = torch.randn(4, dtype=torch.float64)
    jacobian = jacrev(lambda point: flow(point[None])[0][0])(z)
    assert not jacobian.triu(1).any()
    assert (jacobian.tril(-1)[torch.tril(torch.ones(4, 4), -1).bool()] != 0).all()
    torch.testing.assert_close(torch.linalg.slogdet(jacobian).logabsdet, flow(z[None])[1][0])


@pytest.mark.parametrize("tau", SYNTHESIZERS)
@pytest.mark.parametrize("conditioner", CONDITIONERS)
def test_inverse_recovers_the_input(tau: Synthesizer, conditioner: Callable[[int], nn.Module]) -> None:
    torch.manual_seed(1)
    flow = AutoregressiveTransform(conditioner(tau.size), tau).double()
    z = torch.randn(50, 4, dtype=torch.float64)
    x, log_det = flow(z)
    z_back, log_det_back = flow.inverse(x)
    torch.testing.assert_close(z_back, z, atol=1e-10, rtol=0)
    torch.testing.assert_close(log_det_back, -log_det, atol=1e-9, rtol=0)


@pytest.mark.parametrize("tau", SYNTHESIZERS)
def test_inverse_is_accurate_in_float32(tau: Synthesizer) -> None:
    torch.manual_seed(2)
    chain = inverse_autoregressive_flow(6, tau, num_layers=3)
    z = torch.randn(500, 6)
    torch.testing.assert_close(chain.inverse(chain(z)[0])[0], z, atol=1e-4, rtol=0)


def test_forward_takes_one_pass_and_inverse_one_pass_per_coordinate() -> None:
    conditioner = CountingConditioner(MADE(7, 2))
    flow = AutoregressiveTransform(conditioner, AffineSynthesizer())
    flow(torch.randn(3, 7))
    assert conditioner.passes == 1
    flow.inverse(torch.randn(3, 7))
    assert conditioner.passes == 1 + 7


def test_gradients_reach_the_conditioner_in_both_directions() -> None:
    torch.manual_seed(3)
    for is_forward in (True, False):
        flow = AutoregressiveTransform(MADE(3, 2), AffineSynthesizer())
        x, log_det = flow(torch.randn(8, 3)) if is_forward else flow.inverse(torch.randn(8, 3))
        (x.square().sum() + log_det.sum()).backward()
        grads = [parameter.grad for parameter in flow.parameters()]
        assert all(gradient is not None and torch.isfinite(gradient).all() for gradient in grads)


def test_jacobian_of_the_inverse_is_the_inverse_jacobian() -> None:
    """∂z/∂x = (∂x/∂z)⁻¹, through all D passes."""
    torch.manual_seed(4)
    flow = AutoregressiveTransform(MADE(3, 2, activation=tanh), AffineSynthesizer()).double()
    z = torch.randn(3, dtype=torch.float64)
    x = flow(z[None])[0][0].detach()
    jacobian = jacrev(lambda point: flow(point[None])[0][0])(z)
    inverse_jacobian = jacrev(lambda point: flow.inverse(point[None])[0][0])(x)
    torch.testing.assert_close(inverse_jacobian, torch.linalg.inv(jacobian))


@pytest.mark.parametrize("tau", SYNTHESIZERS)
@pytest.mark.parametrize("family", [masked_autoregressive_flow, inverse_autoregressive_flow])
def test_density_integrates_to_one(tau: Synthesizer, family: Callable[..., nn.Module]) -> None:
    torch.manual_seed(5)
    flow = Flow(family(2, tau, num_layers=2, hidden_sizes=(16,)), GaussianBase((2,))).double()
    line = torch.linspace(-30, 30, 401, dtype=torch.float64)
    grid = torch.cartesian_prod(line, line)
    with torch.no_grad():
        total = flow.log_prob(grid).exp().sum() * (line[1] - line[0]) ** 2
    torch.testing.assert_close(float(total), 1.0, atol=2e-3, rtol=0)


def test_maf_is_the_inverse_of_iaf() -> None:
    torch.manual_seed(6)
    maf = masked_autoregressive_flow(3, AffineSynthesizer(), num_layers=2)
    assert isinstance(maf, InverseTransform)
    x = torch.randn(5, 3)
    torch.testing.assert_close(maf.inverse(x)[0], maf.transform(x)[0])


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"must return 2 values for each of 3 coordinates; got shape \(3, 5\)"):
        AutoregressiveTransform(MADE(3, 5), AffineSynthesizer())(torch.randn(1, 3))
    with pytest.raises(ValueError, match="at least 1; got num_layers=0"):
        masked_autoregressive_flow(2, AffineSynthesizer(), num_layers=0)
    with pytest.raises(ValueError, match="at least 1; got features=0"):
        SeparateConditioners(0, 2)
    with pytest.raises(ValueError, match="at least 1; got outputs=2, hidden_size=0"):
        RecurrentConditioner(2, hidden_size=0)
