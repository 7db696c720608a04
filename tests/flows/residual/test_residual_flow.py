from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.func import jacrev, vmap

from parnassus.flows import Flow, GaussianBase, InverseTransform, Invertible
from parnassus.flows.residual.jacobian_traces import rademacher_directions, unit_directions
from parnassus.flows.residual.lipschitz_networks import constrain_lipschitz, contractive_mlp, lipschitz_swish
from parnassus.flows.residual.residual_flow import (
    InvertibleResidual,
    PowerSeriesLogDet,
    RussianRouletteLogDet,
    exact_log_det,
    residual_flow,
)


def residual_map(lipschitz: float = 0.9, *, features: int = 3) -> InvertibleResidual:
    torch.manual_seed(0)
    network = contractive_mlp((features, 16, 16, features), lipschitz=lipschitz)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() == 2:
                nn.init.orthogonal_(parameter, gain=2.0)  # the Lipschitz constant reaches its bound
    return InvertibleResidual(network).double()


def test_log_determinant_matches_autograd() -> None:
    model, z = residual_map(), torch.randn(6, 3, dtype=torch.float64)
    assert isinstance(model, Invertible)
    jacobian = vmap(jacrev(lambda row: model.branch(row) + row))(z)
    expected = torch.linalg.slogdet(jacobian).logabsdet
    torch.testing.assert_close(model(z)[1], expected, rtol=0, atol=1e-12)
    assert float(expected.detach().abs().max()) > 0.05


def test_inverse_and_log_determinant() -> None:
    model, z = residual_map(), torch.randn(20, 3, dtype=torch.float64)
    x, log_det = model(z)
    z_back, log_det_back = model.inverse(x)
    torch.testing.assert_close(z_back, z, rtol=0, atol=1e-10)
    torch.testing.assert_close(log_det_back, -log_det, rtol=0, atol=1e-10)
    single, x32 = residual_map().float(), x.float()
    torch.testing.assert_close(single(single.inverse(x32)[0])[0], x32, rtol=0, atol=1e-5)


def test_gradients_through_the_fixed_point_match_finite_differences() -> None:
    """Gradients in x and in a weight against finite differences, also for tiny losses."""
    model, x = residual_map(), torch.randn(2, 3, dtype=torch.float64)
    weight = next(model.parameters())
    direction, delta = torch.randn_like(weight), 1e-6

    def loss_at(shift: float, point: Tensor) -> Tensor:
        with torch.no_grad():
            weight.add_(shift * direction)
            z, log_det = model.inverse(point)
            weight.sub_(shift * direction)
        return z.sin().sum() + log_det.sum()

    variable = x.clone().requires_grad_()
    z, log_det = model.inverse(variable)
    (1e-9 * (z.sin().sum() + log_det.sum())).backward()
    assert variable.grad is not None
    assert weight.grad is not None
    by_x = (loss_at(0.0, x + delta * x) - loss_at(0.0, x - delta * x)) / (2 * delta)
    torch.testing.assert_close(1e9 * (variable.grad * x).sum(), by_x, rtol=1e-6, atol=0)
    by_weight = (loss_at(delta, x) - loss_at(-delta, x)) / (2 * delta)
    torch.testing.assert_close(1e9 * (weight.grad * direction).sum(), by_weight, rtol=1e-6, atol=0)


@torch.no_grad()
def test_power_series_error_is_bounded() -> None:
    model, z = residual_map(0.7), torch.randn(10, 3, dtype=torch.float64)
    _, expected = exact_log_det(model.branch, z)
    for terms in (1, 3, 10, 60):
        _, estimate = PowerSeriesLogDet(terms, directions=unit_directions)(model.branch, z)
        bound = 3 * 0.7 ** (terms + 1) / ((terms + 1) * 0.3)
        assert float((estimate - expected).abs().max()) <= bound + 1e-12


def test_russian_roulette_is_unbiased_and_truncated_series_is_biased() -> None:
    torch.manual_seed(0)
    rotation = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64)).Q

    def branch(z: Tensor) -> Tensor:
        output: Tensor = 0.7 * z.sin() @ rotation
        return output

    z = (0.3 * torch.randn(1, 3, dtype=torch.float64)).expand(20_000, 3)
    with torch.no_grad():
        _, expected = exact_log_det(branch, z[:1])
        for directions in (unit_directions, rademacher_directions, partial(rademacher_directions, count=2)):
            _, estimate = RussianRouletteLogDet(0.4, min_terms=1, directions=directions)(branch, z)
            assert float((estimate.mean() - expected).abs()) < 0.03  # standard errors of 0.005 to 0.01
        _, truncated = PowerSeriesLogDet(2)(branch, z)
        assert float((truncated.mean() - expected).abs()) > 0.1


def test_density_integrates_to_one_and_has_gradients() -> None:
    torch.manual_seed(0)
    branches = (contractive_mlp((2, 16, 2), first_layer_gain=3.0) for _ in range(2))
    flow = Flow(InverseTransform(residual_flow(branches)), GaussianBase((2,)))
    axis = torch.linspace(-7, 7, 201)
    grid = torch.cartesian_prod(axis, axis)
    with torch.no_grad():
        total = flow.log_prob(grid).exp().sum() * (axis[1] - axis[0]) ** 2
    torch.testing.assert_close(total, torch.tensor(1.0), rtol=0, atol=1e-4)
    flow.loss(torch.randn(20, 2)).backward()
    assert all(parameter.grad is not None for parameter in flow.parameters())
    x, log_prob = flow.sample_with_log_prob(30)
    torch.testing.assert_close(log_prob, flow.log_prob(x), rtol=0, atol=1e-4)


def test_inverse_and_log_determinant_with_a_convolutional_branch() -> None:
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 4, 3, padding=1), Swish(), nn.Conv2d(4, 1, 3, padding=1)]
    model = InvertibleResidual(constrain_lipschitz(nn.Sequential(*layers), 0.9)).double()
    z = torch.randn(5, 1, 4, 4, dtype=torch.float64)
    x, log_det = model(z)
    torch.testing.assert_close(model.inverse(x)[0], z, rtol=0, atol=1e-10)
    _, series = PowerSeriesLogDet(200, directions=unit_directions)(model.branch, z)
    torch.testing.assert_close(series, log_det, rtol=0, atol=1e-8)


class Swish(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return lipschitz_swish(x)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="at least 1; got terms=0"):
        PowerSeriesLogDet(0)
    with pytest.raises(ValueError, match=r"inside \(0, 1\) and min_terms be at least 1; got stop_probability=1"):
        RussianRouletteLogDet(1.0)
    with pytest.raises(ValueError, match="at least 1; got max_iterations=0"):
        InvertibleResidual(nn.Identity(), max_iterations=0)
    with pytest.raises(ValueError, match="must be a contraction"):
        InvertibleResidual(nn.Linear(2, 2, bias=False).requires_grad_(requires_grad=False), max_iterations=3).inverse(
            torch.ones(2, 2)
        )
