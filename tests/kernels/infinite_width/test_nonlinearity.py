"""Gaussian expectations against quadrature, simulation, Price's theorem and autograd, at cos θ = 1 too."""

from math import pi

import pytest
import torch
from torch import Tensor

from parnassus.kernels import (
    GELU,
    Cosine,
    Erf,
    Identity,
    LeakyReLU,
    Nonlinearity,
    Quadrature,
    ReLU,
    Sine,
    normaliser,
)
from parnassus.probability import float64_tensor, standard_normal

NONLINEARITIES: dict[str, Nonlinearity] = {
    "relu": ReLU(),
    "leaky": LeakyReLU(0.2),
    "erf": Erf(),
    "gelu": GELU(),
    "sine": Sine(),
    "cosine": Cosine(),
    "identity": Identity(),
    "tanh": Quadrature(torch.tanh),
}
SMOOTH = ("erf", "gelu", "sine", "cosine", "identity")


def covariances() -> tuple[Tensor, Tensor, Tensor]:
    """Σ (3, 3), Σ_x (3, 1) and Σ_x' (1, 3) of six correlated variables."""
    x = standard_normal(6, 8)
    matrix = x @ x.mT / 8
    return matrix[:3, 3:], matrix.diagonal()[:3, None], matrix.diagonal()[None, 3:]


@pytest.mark.parametrize("name", SMOOTH)
def test_closed_forms_match_quadrature(name: str) -> None:
    sigma, (cross, left, right) = NONLINEARITIES[name], covariances()
    exact, numeric = sigma.expect(cross, left, right), Quadrature(sigma, nodes=80).expect(cross, left, right)
    torch.testing.assert_close(exact.value, numeric.value, atol=1e-12, rtol=0)
    torch.testing.assert_close(exact.derivative, numeric.derivative, atol=1e-11, rtol=0)
    torch.testing.assert_close(
        sigma.second_moment(left), Quadrature(sigma, nodes=80).second_moment(left), atol=1e-12, rtol=0
    )


@pytest.mark.parametrize("name", NONLINEARITIES)
def test_expectations_match_sample_means(name: str) -> None:
    sigma = NONLINEARITIES[name]
    cross, left, right = float64_tensor(-0.4), float64_tensor(0.9), float64_tensor(1.2)
    z = standard_normal(400_000, 2, seed=1)
    u = left.sqrt() * z[:, 0]
    v = cross / left.sqrt() * z[:, 0] + (right - cross**2 / left).sqrt() * z[:, 1]
    value, derivative = sigma.expect(cross, left, right)
    derivatives = [torch.func.grad(lambda w: sigma(w).sum())(w) for w in (u, v)]
    for products, predicted in ((sigma(u) * sigma(v), value), (derivatives[0] * derivatives[1], derivative)):
        error = float((products.mean() - predicted).abs())
        assert error < 1e-12 + 4.5 * float(products.std()) / 400_000**0.5


@pytest.mark.parametrize("name", NONLINEARITIES)
def test_price_theorem_holds(name: str) -> None:
    """Price's theorem: ∂/∂Σ E σ(u)σ(v) = E σ'(u)σ'(v)."""
    cross, left, right = covariances()
    cross = cross.clone().requires_grad_()
    value, derivative = NONLINEARITIES[name].expect(cross, left, right)
    (gradient,) = torch.autograd.grad(value.sum(), cross)
    torch.testing.assert_close(gradient, derivative, atol=2e-5 if name == "tanh" else 1e-11, rtol=0)


@pytest.mark.parametrize("name", NONLINEARITIES)
def test_equal_inputs_give_the_second_moment_and_finite_gradients(name: str) -> None:
    """Includes inputs of norm zero, where a naive angle has an infinite derivative."""
    sigma = NONLINEARITIES[name]
    scale = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
    variances = scale * float64_tensor(1e-3, 1.0, 7.0, 0.0)
    value, derivative = sigma.expect(variances, variances, variances)
    torch.testing.assert_close(value, sigma.second_moment(variances), atol=1e-14, rtol=1e-14)
    (value_gradient,) = torch.autograd.grad(value.sum(), scale, retain_graph=True)
    (moment_gradient,) = torch.autograd.grad(sigma.second_moment(variances).sum(), scale, retain_graph=True)
    torch.testing.assert_close(value_gradient, moment_gradient, atol=1e-7, rtol=1e-6)
    if derivative.requires_grad:
        (derivative_gradient,) = torch.autograd.grad(derivative.sum(), scale)
        assert bool(derivative_gradient.isfinite())


@pytest.mark.parametrize("name", NONLINEARITIES)
def test_autograd_matches_finite_differences(name: str) -> None:
    cross, left, right = (side.clone().requires_grad_() for side in covariances())

    def both(cross: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, ...]:
        return tuple(NONLINEARITIES[name].expect(cross, left, right))

    assert torch.autograd.gradcheck(both, (cross, left, right), atol=1e-5)


def test_relu_at_known_angles() -> None:
    one = float64_tensor(1.0, 1.0, 1.0, 1.0)
    value, derivative = ReLU().expect(float64_tensor(1.0, 0.5, 0.0, -1.0), one, one)
    torch.testing.assert_close(derivative, float64_tensor(1 / 2, 1 / 3, 1 / 4, 0.0), atol=1e-15, rtol=0)
    between = (3**0.5 / 2 + 2 * pi / 3 * 0.5) / (2 * pi)
    torch.testing.assert_close(value, float64_tensor(0.5, between, 1 / (2 * pi), 0.0), atol=1e-15, rtol=0)


def test_an_input_of_norm_zero_has_derivative_one_half() -> None:
    value, derivative = ReLU().expect(float64_tensor(0.0, 0.0), float64_tensor(0.0, 2.0), float64_tensor(0.0, 0.0))
    torch.testing.assert_close(value, float64_tensor(0.0, 0.0), atol=1e-150, rtol=0)
    torch.testing.assert_close(derivative, float64_tensor(0.25, 0.25))
    torch.testing.assert_close(
        LeakyReLU(0.4).expect(float64_tensor(0.0), float64_tensor(0.0), float64_tensor(3.0)).derivative,
        float64_tensor(0.7**2),
    )


@pytest.mark.parametrize("name", ["erf", "sine", "gelu", "relu"])
def test_large_inputs_give_finite_values(name: str) -> None:
    large = float64_tensor(1e8)
    for cross in (large, -large, 0.3 * large):
        value, derivative = NONLINEARITIES[name].expect(cross, large, large)
        assert bool(value.isfinite().all() and derivative.isfinite().all())
    torch.testing.assert_close(Erf().expect(large, large, large).derivative, 4 / pi / (1 + 4 * large).sqrt())


@pytest.mark.parametrize(("name", "constant"), [("relu", 2.0), ("erf", 2.152579), ("identity", 1.0)])
def test_normaliser_matches_known_constants(name: str, constant: float) -> None:
    assert normaliser(NONLINEARITIES[name]) == pytest.approx(constant, abs=1e-6)


def test_float32_is_preserved() -> None:
    cross, left, right = (side.float() for side in covariances())
    for sigma in NONLINEARITIES.values():
        value, derivative = sigma.expect(cross, left, right)
        assert value.dtype == derivative.dtype == sigma.second_moment(left).dtype == torch.float32
