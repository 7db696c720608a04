"""Claims about the KL divergence between Gaussians (book sec. 6.3, Diehl ex. 6.8)."""

from math import exp, log, pi, sqrt

import torch
from scipy.integrate import quad
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal
from parnassus.latent.variational.reparametrisation import standard_normal_kl
from parnassus.probability import diagonal_gaussian_kl, gaussian_kl

DOUBLE = torch.float64


def kl_by_integration(mean_1: float, std_1: float, mean_2: float, std_2: float) -> float:
    """∫ p log(p/q) for two normal densities on the line."""

    def integrand(x: float) -> float:
        one, two = (x - mean_1) / std_1, (x - mean_2) / std_2
        return exp(-(one**2) / 2) * (log(std_2 / std_1) + (two**2 - one**2) / 2)

    value, _ = quad(integrand, mean_1 - 12 * std_1, mean_1 + 12 * std_1, epsabs=1e-13)
    return float(value / (std_1 * sqrt(2 * pi)))


@claim("B6.3-3", "Z13.17", "D6.0.20")
def the_rate_of_a_code_agrees_with_torch_and_quadrature() -> Evidence:
    """½ Σ (σ² + μ² − 1 − log σ²) equals torch, quadrature and sampling, and is 0 at N(0, I) (book eq. 6.14)."""
    torch.manual_seed(0)
    mean, log_variance = torch.randn(2, 50, 4, dtype=DOUBLE)
    q = Normal(mean, (log_variance / 2).exp())
    p = Normal(torch.zeros(4, dtype=DOUBLE), torch.ones(4, dtype=DOUBLE))
    ours = standard_normal_kl(mean, log_variance)
    z = q.sample((4_000,))
    sampled = (q.log_prob(z) - p.log_prob(z)).sum(-1).mean(0)
    one = standard_normal_kl(torch.tensor([0.7], dtype=DOUBLE), torch.tensor([2 * log(1.6)], dtype=DOUBLE))
    return all_of(
        torch=close(ours, kl_divergence(q, p).sum(-1), rtol=1e-12),
        quadrature=close(one, kl_by_integration(0.7, 1.6, 0.0, 1.0), atol=1e-9),
        sampled=close(sampled, ours, rtol=0.05, atol=0.1),
        at_the_prior=close(standard_normal_kl(torch.zeros(4), torch.zeros(4)), 0.0),
        non_negative=greater_equal(ours, 0.0),
    )


@erratum("B6.3-3", printed="Σ (σ² + μ² − log σ − ½)", right="Σ (½σ² + ½μ² − log σ − ½)")
def the_printed_rate_omits_two_factors_of_one_half() -> Correction:
    """The printed rate is ½ instead of 0, and 2.080 instead of 0.555 at μ = 0.7, σ = 1.6 (book eq. 6.14)."""
    mean, sigma = torch.tensor([0.0, 0.7], dtype=DOUBLE), torch.tensor([1.0, 1.6], dtype=DOUBLE)
    exact = torch.tensor([0.0, kl_by_integration(0.7, 1.6, 0.0, 1.0)], dtype=DOUBLE)
    printed = sigma.square() + mean.square() - sigma.log() - 0.5
    return Correction(
        printed=close(printed, exact, atol=1e-6),
        corrected=all_of(
            right=close(standard_normal_kl(mean[:, None], 2 * sigma.log()[:, None]), exact, atol=1e-9),
            printed_values=close(printed, torch.tensor([0.5, 2.08], dtype=DOUBLE), atol=1e-3),
        ),
    )


@claim("B6.3-4")
def the_kl_divergence_between_gaussians_agrees_with_quadrature() -> Evidence:
    """All three forms of the KL divergence agree with quadrature and torch, in 1 and d dimensions (book eq. 6.15)."""
    torch.manual_seed(0)
    mean_1, mean_2 = torch.randn(2, 5, dtype=DOUBLE)
    std_1, std_2 = (0.5 * torch.randn(2, 5, dtype=DOUBLE)).exp()
    divergences = diagonal_gaussian_kl(
        mean_1[:, None], std_1.square()[:, None], mean_2[:, None], std_2.square()[:, None]
    )
    second_line = (
        (2 * pi * std_2.square()).log() / 2
        + (std_1.square() + (mean_1 - mean_2).square()) / (2 * std_2.square())
        - (1 + (2 * pi * std_1.square()).log()) / 2
    )
    integrals = [kl_by_integration(*map(float, row)) for row in zip(mean_1, std_1, mean_2, std_2, strict=True)]
    roots = torch.randn(2, 5, 5, dtype=DOUBLE)
    one, two = roots @ roots.mT + torch.eye(5, dtype=DOUBLE)
    full = kl_divergence(MultivariateNormal(mean_1, one), MultivariateNormal(mean_2, two))
    diagonal = gaussian_kl(mean_1, std_1.square().diag(), mean_2, std_2.square().diag())
    return all_of(
        integration=close(divergences, torch.tensor(integrals, dtype=DOUBLE), atol=1e-9),
        second_line=close(second_line, divergences, rtol=1e-10, atol=1e-12),
        torch=close(divergences, kl_divergence(Normal(mean_1, std_1), Normal(mean_2, std_2)), rtol=1e-10),
        full_covariance=close(gaussian_kl(mean_1, one, mean_2, two), full, rtol=1e-10),
        sum_over_coordinates=close(diagonal, divergences.sum(), rtol=1e-10),
    )


@claim("D6.0.20")
def forward_and_reverse_kl_differ() -> Evidence:
    """KL(q ‖ p) = ½(dσ² + ‖μ‖² − d − d log σ²); KL(p ‖ q) = ½(d log σ² + (d + ‖μ‖²)/σ² − d) (Diehl ex. 6.8)."""
    torch.manual_seed(0)
    mean, variance = torch.randn(3, dtype=DOUBLE), torch.tensor([0.3], dtype=DOUBLE)
    zero, one = torch.zeros(3, dtype=DOUBLE), torch.ones(1, dtype=DOUBLE)
    squared_norm = mean.square().sum()
    forward, reverse = diagonal_gaussian_kl(mean, variance, zero, one), diagonal_gaussian_kl(zero, one, mean, variance)
    line = torch.tensor([0.8], dtype=DOUBLE)
    pair = torch.cat(
        [
            diagonal_gaussian_kl(line, variance, line * 0, one)[None],
            diagonal_gaussian_kl(line * 0, one, line, variance)[None],
        ]
    )
    return all_of(
        forward=close(forward, (3 * 0.3 + squared_norm - 3 - 3 * log(0.3)) / 2, rtol=1e-12),
        reverse=close(reverse, (3 * log(0.3) + (3 + squared_norm) / 0.3 - 3) / 2, rtol=1e-12),
        example=close(pair, torch.tensor([0.571986, 1.631347], dtype=DOUBLE), atol=1e-6),
        by_integration=close(
            pair,
            torch.tensor([kl_by_integration(0.8, 0.3**0.5, 0.0, 1.0), kl_by_integration(0.0, 1.0, 0.8, 0.3**0.5)]),
            atol=1e-7,
        ),
    )


@erratum("D6.0.20", printed="KL(p_Z ‖ q) = ½(log σ² + σ² + μ² − 1)", right="KL(q ‖ p_Z) = ½(σ² + μ² − 1 − log σ²)")
def a_kl_divergence_is_not_negative() -> Correction:
    """At μ = 0.8, σ² = 0.3 the printed formula gives −0.632, but a divergence is non-negative (Diehl ex. 6.8)."""
    mean, variance = 0.8, 0.3
    printed = (log(variance) + variance + mean**2 - 1) / 2
    forward, reverse = (
        kl_by_integration(mean, variance**0.5, 0.0, 1.0),
        kl_by_integration(0.0, 1.0, mean, variance**0.5),
    )
    ours = standard_normal_kl(torch.tensor([mean], dtype=DOUBLE), torch.tensor([log(variance)], dtype=DOUBLE))
    return Correction(
        printed=greater_equal(printed, 0.0),
        corrected=all_of(
            forward=close(ours, forward, atol=1e-9),
            printed_value=close(printed, -0.632, atol=1e-3),
            difference_from_the_reverse=greater_equal(abs(printed - reverse), 2.0),
        ),
    )
