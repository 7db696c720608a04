"""The exponential-normal-exponential model compared with integrals and grid searches."""

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


def scalar(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


@pytest.mark.parametrize(("theta", "x"), [(0.5, 2.0), (3.0, 0.4), (1.0, -1.5), (40.0, 1.0)])
def test_evidence_matches_numerical_integration(theta: float, x: float) -> None:
    normal = torch.distributions.Normal(0.0, 1.0)
    integral, _ = quad(
        lambda z: theta * torch.exp(normal.log_prob(scalar(x - z)) - theta * z).item(),
        0,
        15,
        epsabs=1e-11,
        points=[0.1],
    )
    assert float(log_evidence(scalar(theta), x).exp()) == pytest.approx(integral, rel=1e-7)


def test_evidence_in_the_limit_of_a_large_rate() -> None:
    limit = torch.distributions.Normal(0.0, 1.0).log_prob(scalar(1.3))
    torch.testing.assert_close(log_evidence(scalar(1e5), 1.3), limit, rtol=0, atol=1e-4)


def test_elbo_gradient_matches_autograd() -> None:
    theta = torch.tensor([0.3, 1.0, 4.0], dtype=torch.float64, requires_grad=True)
    phi = torch.tensor([2.0, 0.7, 1.1], dtype=torch.float64, requires_grad=True)
    gradients = grad(elbo(theta, phi, 1.7).sum(), (theta, phi))
    torch.testing.assert_close(elbo_gradient(theta, phi, 1.7), gradients)


@pytest.mark.parametrize("x", [-3.0, 0.0, 0.5, 40.0])
def test_optimal_phi_maximises_the_elbo(x: float) -> None:
    theta = torch.tensor([0.01, 1.0, 50.0], dtype=torch.float64)
    phi = optimal_phi(theta, x)
    bound = elbo(theta, phi, x)
    assert bool((elbo(theta, 1.01 * phi, x) < bound).all())
    assert bool((elbo(theta, phi / 1.01, x) < bound).all())


@pytest.mark.parametrize("x", [0.2, 1.0, 5.0])
def test_maximisers_match_a_grid_search(x: float) -> None:
    grid = torch.logspace(-3, 3, 400, dtype=torch.float64)
    maximiser = scalar(elbo_maximiser(x))
    assert float(elbo(maximiser, maximiser, x)) >= float(elbo(grid[:, None], grid[None], x).max())
    assert float(log_evidence(scalar(maximum_likelihood_theta(x)), x)) >= float(log_evidence(grid, x).max())


@pytest.mark.parametrize("x", [0.0, -1.0, float("nan")])
def test_non_positive_x_has_no_maximiser(x: float) -> None:
    with pytest.raises(ValueError, match="there is no finite maximiser; got x="):
        elbo_maximiser(x)
    with pytest.raises(ValueError, match="there is no finite maximiser; got x="):
        maximum_likelihood_theta(x)


def test_non_positive_rates_raise_value_error() -> None:
    with pytest.raises(ValueError, match="must be positive; got theta=-1"):
        elbo(scalar(-1.0), scalar(1.0), 1.0)
    with pytest.raises(ValueError, match="must be positive; got phi=0"):
        elbo_gradient(scalar(1.0), scalar(0.0), 1.0)
    with pytest.raises(ValueError, match="must be positive; got theta=0"):
        log_evidence(scalar(0.0), 1.0)
