"""Synthesizers: inverses, derivatives and numerical stability."""

import pytest
import torch
from torch import Tensor, nn
from torch.func import grad, vmap

from parnassus.flows import AffineSynthesizer, SplineSynthesizer, Synthesizer, inverse_autoregressive_flow

SYNTHESIZERS = [
    AffineSynthesizer(),
    AffineSynthesizer(bound=2.0),
    SplineSynthesizer(),
    SplineSynthesizer(bins=3, bound=1.5),
]


def sample_inputs(tau: Synthesizer, count: int, *, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """Inputs inside and outside the bound, with parameters h for each."""
    torch.manual_seed(0)
    z = torch.linspace(-7, 7, count, dtype=torch.float64)
    return z, scale * torch.randn(count, tau.size, dtype=torch.float64)


@pytest.mark.parametrize("tau", SYNTHESIZERS)
def test_inverse_recovers_the_input_and_derivative_matches_autograd(tau: Synthesizer) -> None:
    z, h = sample_inputs(tau, 301)
    x, log_derivative = tau(z, h)
    z_back, log_derivative_back = tau.inverse(x, h)
    torch.testing.assert_close(z_back, z, atol=1e-10, rtol=0)
    torch.testing.assert_close(log_derivative_back, -log_derivative, atol=1e-8, rtol=0)
    derivative = vmap(grad(lambda value, parameters: tau(value[None], parameters[None])[0][0]))(z, h)
    torch.testing.assert_close(derivative.log(), log_derivative, atol=1e-10, rtol=0)


@pytest.mark.parametrize("tau", SYNTHESIZERS)
def test_synthesizer_increases_for_any_parameters(tau: Synthesizer) -> None:
    z, h = sample_inputs(tau, 2_001, scale=5.0)
    x, _ = tau(z, h[:1].expand(len(z), -1))
    assert float(x.diff().min()) > 0


@pytest.mark.parametrize("tau", SYNTHESIZERS)
def test_zero_parameters_give_the_identity(tau: Synthesizer) -> None:
    z, h = sample_inputs(tau, 101, scale=0.0)
    x, log_derivative = tau(z, h)
    torch.testing.assert_close(x, z, atol=1e-12, rtol=0)
    torch.testing.assert_close(log_derivative, torch.zeros_like(z), atol=1e-12, rtol=0)


def test_bound_prevents_overflow_for_large_inputs() -> None:
    torch.manual_seed(4)
    far = torch.full((1, 2), 60.0)
    for bound, finite in ((None, False), (2.0, True)):
        chain = inverse_autoregressive_flow(2, AffineSynthesizer(bound), num_layers=8)
        for parameter in chain.parameters():
            nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(0))
        assert bool(torch.isfinite(chain(far)[0]).all()) == finite


def test_spline_interpolates_its_knots_and_derivatives() -> None:
    tau = SplineSynthesizer(bins=5, bound=2.0)
    torch.manual_seed(1)
    h = torch.randn(1, tau.size, dtype=torch.float64)
    knots = tau.knots(h)
    x, log_derivative = tau(knots.x[0], h.expand(6, -1))
    torch.testing.assert_close(x, knots.y[0])
    torch.testing.assert_close(log_derivative.exp(), knots.derivative[0])
    torch.testing.assert_close(knots.x[0, [0, -1]], torch.tensor([-2.0, 2.0], dtype=torch.float64))
    torch.testing.assert_close(knots.derivative[0, [0, -1]], torch.ones(2, dtype=torch.float64))


def test_derivative_of_a_spline_is_continuous() -> None:
    """At inner knots and at the bound."""
    tau = SplineSynthesizer(bins=6, bound=3.0)
    torch.manual_seed(2)
    h = torch.randn(1, tau.size, dtype=torch.float64)
    borders = tau.knots(h).x[0]
    step = 1e-7
    left, right = (tau(borders + side * step, h.expand(7, -1))[1] for side in (-1, 1))
    torch.testing.assert_close(left, right, atol=1e-4, rtol=0)


def test_inverse_is_stable_in_float32_for_narrow_bins() -> None:
    """Rounding makes some discriminants negative, for which a square root without clamping is NaN."""
    tau = SplineSynthesizer(bins=16, bound=4.0)
    torch.manual_seed(3)
    z, h = 8 * torch.rand(100_000) - 4, 6 * torch.randn(100_000, tau.size)
    x = tau(z, h)[0].requires_grad_()
    h.requires_grad_()
    z_back, log_derivative = tau.inverse(x, h)
    torch.testing.assert_close(tau(z_back, h)[0], x, atol=2e-3, rtol=0)  # derivatives of several thousand
    (z_back.sum() + log_derivative.sum()).backward()
    assert x.grad is not None
    assert h.grad is not None
    assert torch.isfinite(x.grad).all()
    assert torch.isfinite(h.grad).all()


def test_gradients_are_finite_outside_the_bound() -> None:
    """Both branches of `torch.where` are differentiated, so neither may be NaN."""
    tau = SplineSynthesizer(bins=4, bound=1.0)
    z = torch.tensor([-1e6, -1.0, 0.0, 1.0, 1e6], requires_grad=True)
    h = torch.randn(5, tau.size, requires_grad=True)
    for image, log_derivative in (tau(z, h), tau.inverse(z, h)):
        (image.sum() + log_derivative.sum()).backward()
    assert z.grad is not None
    assert h.grad is not None
    assert torch.isfinite(z.grad).all()
    assert torch.isfinite(h.grad).all()
    assert float(z.grad[0]) == 2.0  # derivative 1 in both directions


@pytest.mark.parametrize(
    ("bins", "bound", "min_fraction", "message"),
    [
        (0, 1.0, 1e-3, "at least 1 and bound positive; got bins=0"),
        (4, 0.0, 1e-3, "bound positive; got bins=4, bound=0.0"),
        (4, 1.0, 0.25, "between 0 and 1/bins = 1/4; got min_fraction=0.25"),
        (4, 1.0, 0.0, "between 0 and 1/bins = 1/4; got min_fraction=0.0"),
    ],
)
def test_invalid_arguments_raise_value_error(bins: int, bound: float, min_fraction: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SplineSynthesizer(bins, bound, min_fraction)


def test_non_positive_bound_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"must be positive; got bound=0\.0"):
        AffineSynthesizer(bound=0.0)
