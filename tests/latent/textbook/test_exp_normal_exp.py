"""The example with exponential codes against integrals and searches."""

import pytest
import torch
from scipy.integrate import quad
from torch import Tensor
from torch.autograd import grad

from parnassus.latent.textbook.exp_normal_exp import (
    elbo,
    elbo_gradient,
    elbo_maximiser,
    log_evidence,
    maximum_likelihood_theta,
    optimal_phi,
)


def number(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


@pytest.mark.parametrize(("theta", "x"), [(0.5, 2.0), (3.0, 0.4), (1.0, -1.5), (40.0, 1.0)])
def test_the_evidence_is_the_integral_over_the_code(theta: float, x: float) -> None:
    normal = torch.distributions.Normal(0.0, 1.0)
    integral, _ = quad(
        lambda z: theta * torch.exp(normal.log_prob(number(x - z)) - theta * z).item(),
        0,
        15,
        epsabs=1e-11,
        points=[0.1],
    )
    assert float(log_evidence(number(theta), x).exp()) == pytest.approx(integral, rel=1e-7)


def test_a_large_rate_concentrates_the_code_at_zero() -> None:
    limit = torch.distributions.Normal(0.0, 1.0).log_prob(number(1.3))
    torch.testing.assert_close(log_evidence(number(1e5), 1.3), limit, rtol=0, atol=1e-4)


def test_the_gradient_equals_autodiff() -> None:
    theta = torch.tensor([0.3, 1.0, 4.0], dtype=torch.float64, requires_grad=True)
    phi = torch.tensor([2.0, 0.7, 1.1], dtype=torch.float64, requires_grad=True)
    slopes = grad(elbo(theta, phi, 1.7).sum(), (theta, phi))
    torch.testing.assert_close(elbo_gradient(theta, phi, 1.7), slopes)


@pytest.mark.parametrize("x", [-3.0, 0.0, 0.5, 40.0])
def test_the_optimal_phi_is_a_stationary_maximum(x: float) -> None:
    theta = torch.tensor([0.01, 1.0, 50.0], dtype=torch.float64)
    phi = optimal_phi(theta, x)
    bound = elbo(theta, phi, x)
    assert bool((elbo(theta, 1.01 * phi, x) < bound).all())
    assert bool((elbo(theta, phi / 1.01, x) < bound).all())


@pytest.mark.parametrize("x", [0.2, 1.0, 5.0])
def test_no_grid_point_exceeds_the_maximisers(x: float) -> None:
    grid = torch.logspace(-3, 3, 400, dtype=torch.float64)
    peak = number(elbo_maximiser(x))
    assert float(elbo(peak, peak, x)) >= float(elbo(grid[:, None], grid[None], x).max())
    assert float(log_evidence(number(maximum_likelihood_theta(x)), x)) >= float(log_evidence(grid, x).max())


@pytest.mark.parametrize("x", [0.0, -1.0, float("nan")])
def test_without_a_positive_x_there_is_no_maximiser(x: float) -> None:
    with pytest.raises(ValueError, match="there is no finite maximiser; got x="):
        elbo_maximiser(x)
    with pytest.raises(ValueError, match="there is no finite maximiser; got x="):
        maximum_likelihood_theta(x)


def test_rates_must_be_positive() -> None:
    with pytest.raises(ValueError, match="must be positive; got theta=-1"):
        elbo(number(-1.0), number(1.0), 1.0)
    with pytest.raises(ValueError, match="must be positive; got phi=0"):
        elbo_gradient(number(1.0), number(0.0), 1.0)
    with pytest.raises(ValueError, match="must be positive; got theta=0"):
        log_evidence(number(0.0), 1.0)
