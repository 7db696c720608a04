"""Claims about the example with exponential codes, with bound and evidence in closed form (Diehl ex. 6.7)."""

from math import exp, log, pi

import torch
from scipy.integrate import quad
from scipy.optimize import minimize, minimize_scalar
from torch import Tensor
from torch.func import grad

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.latent.textbook.exp_normal_exp import (
    HALF_LOG_2PI,
    elbo,
    elbo_gradient,
    elbo_maximiser,
    log_evidence,
    maximum_likelihood_theta,
    optimal_phi,
)

OBSERVED = (1.0, 2.0, 3.5)


def scalar(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def log_joint(theta: float, x: float, z: float) -> float:
    return log(theta) - theta * z - log(2 * pi) / 2 - (x - z) ** 2 / 2


def elbo_by_integration(theta: float, phi: float, x: float) -> float:
    """E_q[log p(x, z) − log q(z)] by quadrature."""
    value, _ = quad(
        lambda z: phi * exp(-phi * z) * (log_joint(theta, x, z) - log(phi) + phi * z), 0, 60 / phi, epsabs=1e-12
    )
    return float(value)


def evidence_by_integration(theta: float, x: float) -> float:
    value, _ = quad(lambda z: exp(log_joint(theta, x, z)), 0, abs(x) + 12, epsabs=1e-13)
    return float(value)


@claim("D6.0.14")
def bound_and_evidence_agree_with_quadrature() -> Evidence:
    """L(θ, ϕ; x) and p_θ(x) = θ exp(θ²/2 − θx) Φ(x − θ) agree with quadrature, L below log p (Diehl ex. 6.7)."""
    points = [(0.7, 1.3, 2.0), (2.0, 2.0, 1.0), (0.3, 0.9, -0.5), (5.0, 2.5, 3.5)]
    bounds = torch.stack([elbo(scalar(theta), scalar(phi), x) for theta, phi, x in points])
    evidence = torch.stack([log_evidence(scalar(theta), x) for theta, _, x in points])
    return all_of(
        bound=close(bounds, torch.tensor([elbo_by_integration(*point) for point in points]), atol=1e-6),
        evidence=close(
            evidence.exp(), torch.tensor([evidence_by_integration(theta, x) for theta, _, x in points]), rtol=1e-6
        ),
        bound_is_below_the_evidence=less_equal(bounds, evidence),
    )


@claim("D6.0.14")
def the_bound_is_maximal_at_two_over_x() -> Evidence:
    """For x > 0 the maximum of L over θ and ϕ is −½ log 2π − x²/4 at θ = ϕ = 2/x (Diehl ex. 6.7)."""
    optima = []
    for x in OBSERVED:
        search = minimize(
            lambda rates, x=x: -float(elbo(scalar(exp(rates[0])), scalar(exp(rates[1])), x)), [0.0, 0.0], tol=1e-10
        )
        optima.append([exp(search.x[0]), exp(search.x[1]), -search.fun])
    maxima = torch.tensor([[elbo_maximiser(x), elbo_maximiser(x), -HALF_LOG_2PI - x**2 / 4] for x in OBSERVED])
    theta, phi, x = scalar(0.6), scalar(1.7), 2.5
    autograd_gradient = grad(elbo, argnums=(0, 1))(theta, phi, x)
    return all_of(
        search=close(torch.tensor(optima), maxima, rtol=1e-4),
        printed_digits=close(maxima[:, 2], torch.tensor([-1.168939, -1.918939, -3.981439]), atol=1e-5),
        gradient=close(torch.stack(elbo_gradient(theta, phi, x)), torch.stack(autograd_gradient), rtol=1e-10),
        best_phi=close(elbo_gradient(theta, optimal_phi(theta, x), x)[1], 0.0, atol=1e-12),
    )


@claim("D6.0.14")
def the_maximiser_of_the_bound_is_not_the_maximum_likelihood_estimate() -> Evidence:
    """For x = 1, 2, 3.5 the maximum-likelihood θ is 1.68, 0.658, 0.314; the bound gives 2, 1, 0.571 (Diehl ex. 6.7)."""
    mle = torch.tensor([maximum_likelihood_theta(x) for x in OBSERVED], dtype=torch.float64)
    searched = [
        minimize_scalar(
            lambda theta, x=x: -evidence_by_integration(theta, x),
            bounds=(0.05, 5),
            method="bounded",
            options={"xatol": 1e-7},
        ).x
        for x in OBSERVED
    ]
    maximisers = torch.tensor([elbo_maximiser(x) for x in OBSERVED], dtype=torch.float64)
    evidence_at_maximisers = torch.stack(
        [log_evidence(theta, x) for theta, x in zip(maximisers, OBSERVED, strict=True)]
    )
    return all_of(
        maximum_likelihood=close(mle, torch.tensor([1.67957, 0.65778, 0.31359]), atol=1e-5),
        by_search=close(mle, torch.tensor(searched), atol=1e-4),
        ratio_of_the_maximisers=greater_equal(maximisers / mle, 1.15),
        evidence_at_the_maximisers=close(
            evidence_at_maximisers, torch.tensor([-1.147874, -1.672754, -2.398055]), atol=1e-6
        ),
    )


@claim("D6.0.14")
def without_a_positive_x_the_bound_has_no_maximiser() -> Evidence:
    """For x ≤ 0 the bound at the optimal ϕ increases in θ towards −½ log 2π − x²/2 (Diehl ex. 6.7)."""
    theta = torch.logspace(-1, 4, 60, dtype=torch.float64)
    smallest_increases, distances_to_the_limit = [], []
    for x in (0.0, -1.0):
        profile = elbo(theta, optimal_phi(theta, x), x)
        smallest_increases.append(profile.diff().min())
        distances_to_the_limit.append(-HALF_LOG_2PI - x**2 / 2 - profile[-1])
    positive = elbo(theta, optimal_phi(theta, 1.0), 1.0)
    return all_of(
        increasing=greater_equal(torch.stack(smallest_increases), 0.0),
        limit=close(torch.stack(distances_to_the_limit), 0.0, atol=2e-4),
        positive_x_has_a_maximum=less_equal(positive.diff().min(), -1e-4),
    )


@erratum(
    "D6.0.14",
    printed="E_q z² = 1/ϕ², maximiser θ = ϕ = 1/x, called MLE",
    right="E_q z² = 2/ϕ², maximiser 2/x of the ELBO",
)
def the_second_moment_of_an_exponential_is_twice_its_squared_mean() -> Correction:
    """With 1/ϕ² the printed L exceeds the evidence, and at 1/x the true L is not stationary (Diehl ex. 6.7)."""
    x = 2.0
    rate = scalar(1 / x)
    as_printed = elbo(rate, rate, x) + 1 / (2 * rate.square())  # ½ · 1/ϕ² less
    gradient_at_one_over_x = torch.stack(elbo_gradient(rate, rate, x))
    two_over_x = scalar(elbo_maximiser(x))
    return Correction(
        printed=all_of(
            stationary_at_one_over_x=close(gradient_at_one_over_x, 0.0, atol=1e-6),
            below_the_evidence=less_equal(as_printed, log_evidence(rate, x)),
            is_the_maximum=greater_equal(elbo(rate, rate, x), elbo(two_over_x, two_over_x, x)),
        ),
        corrected=all_of(
            stationary_at_two_over_x=close(torch.stack(elbo_gradient(two_over_x, two_over_x, x)), 0.0, atol=1e-12),
            second_moment=close(quad(lambda z: z**2 * 1.3 * exp(-1.3 * z), 0, 60)[0], 2 / 1.3**2, rtol=1e-8),
        ),
    )
