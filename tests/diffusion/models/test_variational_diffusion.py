"""The continuous-time bound and its schedules, against autograd and closed forms."""

from math import log, pi

import pytest
import torch
from torch import Tensor, nn

from parnassus.diffusion.models.variational_diffusion import (
    MonotoneCurve,
    VariationalDiffusion,
    linear_curve,
    low_discrepancy_times,
)


class LinearDenoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.zeros(()))

    def forward(self, z: Tensor, gamma: Tensor) -> Tensor:
        return self.slope * z


class ExactDenoiser(nn.Module):
    """E[ε | z] for N(0, ¼) data."""

    def forward(self, z: Tensor, gamma: Tensor) -> Tensor:
        signal, noise = torch.sigmoid(-gamma), torch.sigmoid(gamma)
        return (noise.sqrt() / (signal / 4 + noise))[:, None] * z


def random_curve() -> MonotoneCurve:
    torch.manual_seed(0)
    curve = MonotoneCurve(5).double()
    for weight in curve.parameters():
        nn.init.normal_(weight, std=3.0)
    return curve


def test_curve_increases_from_0_to_1_and_returns_its_derivative() -> None:
    curve, t = random_curve(), torch.linspace(0, 1, 101, dtype=torch.float64, requires_grad=True)
    u, derivative = curve(t)
    (slope,) = torch.autograd.grad(u.sum(), t)
    torch.testing.assert_close(derivative, slope)
    assert bool((derivative > 0).all())
    torch.testing.assert_close(u[[0, -1]].detach(), torch.tensor([0.0, 1.0], dtype=torch.float64))


def test_untrained_curve_is_nearly_linear() -> None:
    t = torch.linspace(0, 1, 50)
    u, _ = MonotoneCurve()(t)
    torch.testing.assert_close(u.detach(), t, atol=0.03, rtol=0)


def test_gamma_ranges_from_gamma_min_to_gamma_max() -> None:
    model = VariationalDiffusion(LinearDenoiser(), (1,), curve=random_curve(), gamma_min=-3.0, gamma_max=5.0).double()
    gamma, slope = model.level(torch.tensor([0.0, 1.0], dtype=torch.float64))
    torch.testing.assert_close(gamma.detach(), torch.tensor([-3.0, 5.0], dtype=torch.float64))
    assert bool((slope > 0).all())


@torch.no_grad()
def test_terms_of_zero_denoiser_match_closed_form() -> None:
    """½ (γ_1 − γ_0) ‖ε‖², ½ D (1 + log 2π + γ_0), and the divergence of N(α x, σ²) from N(0, 1)."""
    model = VariationalDiffusion(LinearDenoiser(), (2,), gamma_min=-4.0, gamma_max=2.0)
    x, noise = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 0.0]])
    terms = model.terms(x, torch.tensor([0.3]), noise)
    assert float(terms.diffusion) == pytest.approx(0.5 * 6 * 9)
    assert float(terms.reconstruction) == pytest.approx(1 + log(2 * pi) - 4)
    z = torch.distributions.Normal(x * torch.tensor(-2.0).sigmoid().sqrt(), torch.tensor(2.0).sigmoid().sqrt())
    prior = torch.distributions.kl_divergence(z, torch.distributions.Normal(0.0, 1.0)).sum()
    assert float(terms.prior) == pytest.approx(float(prior))
    assert float(terms.negative_elbo) == pytest.approx(float(terms.diffusion + terms.reconstruction + terms.prior))


def test_only_the_curve_receives_the_gradient_of_the_second_moment() -> None:
    curve, denoiser = random_curve(), LinearDenoiser()
    model = VariationalDiffusion(denoiser, (1,), curve=curve, gamma_min=-4.0, gamma_max=4.0).double()
    x = torch.randn(64, 1, dtype=torch.float64)
    torch.manual_seed(1)
    model.loss(x).backward()
    torch.manual_seed(1)
    t, noise = low_discrepancy_times(x), torch.randn_like(x)
    terms = model.terms(x, t, noise)
    curve_gradients = torch.autograd.grad(terms.diffusion.square().mean(), list(curve.parameters()), retain_graph=True)
    other_gradients = torch.autograd.grad(terms.negative_elbo.mean(), [denoiser.slope, model.ends])
    for weight, gradient in zip(
        [*curve.parameters(), denoiser.slope, model.ends], curve_gradients + other_gradients, strict=True
    ):
        torch.testing.assert_close(weight.grad, gradient)


def test_low_discrepancy_times_are_evenly_spaced() -> None:
    torch.manual_seed(0)
    t = low_discrepancy_times(torch.zeros(100, 2))
    assert float(t.min()) >= 0
    assert float(t.max()) < 1
    torch.testing.assert_close(t.sort().values.diff(), torch.full((99,), 0.01), atol=1e-5, rtol=0)


def test_samples_of_the_exact_model_follow_the_data() -> None:
    torch.manual_seed(0)
    x = VariationalDiffusion(ExactDenoiser(), (1,), gamma_min=-10.0, gamma_max=10.0).sample(5_000, steps=200)
    assert float(x.mean()) == pytest.approx(0, abs=0.03)
    assert float(x.std()) == pytest.approx(0.5, rel=0.04)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"gamma_min must be smaller than gamma_max; got gamma_min="):
        VariationalDiffusion(LinearDenoiser(), (1,), gamma_min=3.0, gamma_max=3.0)
    with pytest.raises(ValueError, match="components must be at least 1; got components=0"):
        MonotoneCurve(0)
    with pytest.raises(ValueError, match="steps must be at least 2; got steps=1"):
        VariationalDiffusion(LinearDenoiser(), (1,), curve=linear_curve).sample(1, steps=1)
