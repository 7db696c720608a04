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

EVERY: dict[str, Nonlinearity] = {
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


def number(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def covariances() -> tuple[Tensor, Tensor, Tensor]:
    """Σ (3, 3), Σ_x (3, 1) and Σ_x' (1, 3) of six correlated numbers."""
    x = torch.randn(6, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    every = x @ x.mT / 8
    return every[:3, 3:], every.diagonal()[:3, None], every.diagonal()[None, 3:]


@pytest.mark.parametrize("name", SMOOTH)
def test_closed_forms_are_what_quadrature_gives(name: str) -> None:
    sigma, (cross, left, right) = EVERY[name], covariances()
    exact, numeric = sigma.expect(cross, left, right), Quadrature(sigma, nodes=80).expect(cross, left, right)
    torch.testing.assert_close(exact.value, numeric.value, atol=1e-12, rtol=0)
    torch.testing.assert_close(exact.derivative, numeric.derivative, atol=1e-11, rtol=0)
    torch.testing.assert_close(
        sigma.second_moment(left), Quadrature(sigma, nodes=80).second_moment(left), atol=1e-12, rtol=0
    )


@pytest.mark.parametrize("name", EVERY)
def test_expectations_are_means_over_many_draws(name: str) -> None:
    sigma = EVERY[name]
    cross, left, right = number(-0.4), number(0.9), number(1.2)
    z = torch.randn(400_000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    u = left.sqrt() * z[:, 0]
    v = cross / left.sqrt() * z[:, 0] + (right - cross**2 / left).sqrt() * z[:, 1]
    value, slope = sigma.expect(cross, left, right)
    slopes = [torch.func.grad(lambda w: sigma(w).sum())(w) for w in (u, v)]
    for products, predicted in ((sigma(u) * sigma(v), value), (slopes[0] * slopes[1], slope)):
        error = float((products.mean() - predicted).abs())
        assert error < 1e-12 + 4.5 * float(products.std()) / 400_000**0.5


@pytest.mark.parametrize("name", EVERY)
def test_price_theorem_gives_the_derivative_by_the_covariance(name: str) -> None:
    """Price's theorem: ∂/∂Σ E σ(u)σ(v) = E σ'(u)σ'(v)."""
    cross, left, right = covariances()
    cross = cross.clone().requires_grad_()
    value, slope = EVERY[name].expect(cross, left, right)
    (derivative,) = torch.autograd.grad(value.sum(), cross)
    torch.testing.assert_close(derivative, slope, atol=2e-5 if name == "tanh" else 1e-11, rtol=0)


@pytest.mark.parametrize("name", EVERY)
def test_equal_inputs_give_the_second_moment_and_finite_gradients(name: str) -> None:
    """On the diagonal, and for inputs without length, where a naive angle has an infinite derivative."""
    sigma = EVERY[name]
    scale = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
    variances = scale * number(1e-3, 1.0, 7.0, 0.0)
    value, slope = sigma.expect(variances, variances, variances)
    torch.testing.assert_close(value, sigma.second_moment(variances), atol=1e-14, rtol=1e-14)
    (by_value,) = torch.autograd.grad(value.sum(), scale, retain_graph=True)
    (by_square,) = torch.autograd.grad(sigma.second_moment(variances).sum(), scale, retain_graph=True)
    torch.testing.assert_close(by_value, by_square, atol=1e-7, rtol=1e-6)
    if slope.requires_grad:
        (by_slope,) = torch.autograd.grad(slope.sum(), scale)
        assert bool(by_slope.isfinite())


@pytest.mark.parametrize("name", EVERY)
def test_autograd_agrees_with_differences(name: str) -> None:
    cross, left, right = (side.clone().requires_grad_() for side in covariances())

    def both(cross: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, ...]:
        return tuple(EVERY[name].expect(cross, left, right))

    assert torch.autograd.gradcheck(both, (cross, left, right), atol=1e-5)


def test_the_rectifier_at_known_angles() -> None:
    one = number(1.0, 1.0, 1.0, 1.0)
    value, slope = ReLU().expect(number(1.0, 0.5, 0.0, -1.0), one, one)
    torch.testing.assert_close(slope, number(1 / 2, 1 / 3, 1 / 4, 0.0), atol=1e-15, rtol=0)
    between = (3**0.5 / 2 + 2 * pi / 3 * 0.5) / (2 * pi)
    torch.testing.assert_close(value, number(0.5, between, 1 / (2 * pi), 0.0), atol=1e-15, rtol=0)


def test_an_input_of_norm_zero_has_derivative_one_half() -> None:
    value, slope = ReLU().expect(number(0.0, 0.0), number(0.0, 2.0), number(0.0, 0.0))
    torch.testing.assert_close(value, number(0.0, 0.0), atol=1e-150, rtol=0)
    torch.testing.assert_close(slope, number(0.25, 0.25))
    torch.testing.assert_close(LeakyReLU(0.4).expect(number(0.0), number(0.0), number(3.0)).derivative, number(0.7**2))


@pytest.mark.parametrize("name", ["erf", "sine", "gelu", "relu"])
def test_long_inputs_stay_finite(name: str) -> None:
    huge = number(1e8)
    for cross in (huge, -huge, 0.3 * huge):
        value, slope = EVERY[name].expect(cross, huge, huge)
        assert bool(value.isfinite().all() and slope.isfinite().all())
    torch.testing.assert_close(Erf().expect(huge, huge, huge).derivative, 4 / pi / (1 + 4 * huge).sqrt())


@pytest.mark.parametrize(("name", "constant"), [("relu", 2.0), ("erf", 2.152579), ("identity", 1.0)])
def test_normalisers(name: str, constant: float) -> None:
    assert normaliser(EVERY[name]) == pytest.approx(constant, abs=1e-6)


def test_float32_stays_float32() -> None:
    cross, left, right = (side.float() for side in covariances())
    for sigma in EVERY.values():
        value, slope = sigma.expect(cross, left, right)
        assert value.dtype == slope.dtype == sigma.second_moment(left).dtype == torch.float32
