"""Claims about Gaussian moments, pairings and integration by parts (Diehl thm. 5.5)."""

from math import factorial, prod

import torch
from scipy.stats import kstest
from torch import Tensor

from parnassus.atlas import Correction, Evidence, accepts, all_of, claim, close, erratum, less_equal, raises
from parnassus.probability.claims.gaussians import random_gaussian
from parnassus.probability.distributions.gaussian import Gaussian
from parnassus.probability.distributions.normal import normal_density
from parnassus.probability.distributions.seeded_samples import standard_normal
from parnassus.probability.expectations.expectation import expectation_by_quadrature
from parnassus.probability.expectations.gauss_hermite import gaussian_expectation
from parnassus.probability.expectations.gaussian_integration_by_parts import (
    gaussian_integration_by_parts,
    residual_decomposition,
    residuals,
)
from parnassus.probability.expectations.gaussian_moments import (
    moment_by_differentiation,
    moment_by_pairings,
    moment_by_recursion,
    pairings,
)


def centred_gaussian(dim: int, *, seed: int = 0) -> Gaussian:
    gaussian = random_gaussian(dim, seed=seed)
    return Gaussian(torch.zeros_like(gaussian.mean), gaussian.covariance)


def _by_quadrature(gaussian: Gaussian, indices: tuple[int, ...]) -> Tensor:
    return gaussian_expectation(lambda x: x[list(indices)].prod(), gaussian, nodes=6)


@claim("D5.0.9")
def the_number_of_pairings_is_a_double_factorial() -> Evidence:
    """There are (n − 1)!! pairings of n factors, 15 of six, and none if n is odd (Diehl thm. 5.5)."""
    even = [sum(1 for _ in pairings(2 * half)) for half in range(6)]
    odd = [sum(1 for _ in pairings(2 * half + 1)) for half in range(5)]
    formula = [factorial(2 * half) // (2**half * factorial(half)) for half in range(6)]
    return all_of(
        even=close(torch.tensor(even), torch.tensor(formula)),
        of_six=close(even[3], 15),
        odd=close(torch.tensor(odd), 0),
        each_once=close(len(set(map(frozenset, pairings(8)))), 105),
    )


@claim("D5.0.9")
def four_formulas_for_gaussian_moments_agree() -> Evidence:
    """Pairings, recursion, derivatives of E exp⟨a, X⟩ and quadrature agree (Diehl thm. 5.5)."""
    gaussian = centred_gaussian(3)
    products = [
        (),
        (0, 1),
        (0, 1, 2, 2),
        (0, 0, 1, 1),
        (0, 1, 2),
        (0, 0, 0, 1, 1, 2),
        (2,) * 6,
        (0, 1, 1, 2, 2),
        (0, 1, 2) * 2,
    ]
    by_pairings = torch.stack([moment_by_pairings(gaussian.covariance, indices) for indices in products])
    recursive = torch.stack([moment_by_recursion(gaussian.covariance, indices) for indices in products])
    derived = torch.stack([moment_by_differentiation(gaussian, indices) for indices in products])
    exact = torch.stack([_by_quadrature(gaussian, indices) for indices in products])
    shifted = random_gaussian(3)
    return all_of(
        recursion=close(recursive, by_pairings, rtol=1e-12, atol=1e-12),
        differentiation=close(derived, by_pairings, rtol=1e-11, atol=1e-11),
        quadrature=close(exact, by_pairings, rtol=1e-10, atol=1e-9),
        odd_vanish=close(by_pairings[torch.tensor([len(indices) % 2 == 1 for indices in products])], 0.0),
        with_a_mean=close(
            moment_by_differentiation(shifted, (0, 1, 1, 2)), _by_quadrature(shifted, (0, 1, 1, 2)), rtol=1e-10
        ),
    )


@claim("D5.0.9")
def four_factors_have_three_terms() -> Evidence:
    """E[X₁X₂X₃X₄] = Σ₁₂Σ₃₄ + Σ₁₃Σ₂₄ + Σ₁₄Σ₂₃, and E X²ᵐ = (2m − 1)!! σ²ᵐ (Diehl thm. 5.5)."""
    S = centred_gaussian(4).covariance
    by_hand = S[0, 1] * S[2, 3] + S[0, 2] * S[1, 3] + S[0, 3] * S[1, 2]
    sigma = 0.7
    single = torch.tensor([[sigma**2]], dtype=torch.float64)
    powers = torch.stack([moment_by_recursion(single, (0,) * (2 * m)) for m in range(1, 7)])
    expected = [prod(range(1, 2 * m, 2)) * sigma ** (2 * m) for m in range(1, 7)]
    x = centred_gaussian(4).sample(400_000, generator=torch.Generator().manual_seed(0)).prod(1)
    return all_of(
        three_terms=close(moment_by_pairings(S, (0, 1, 2, 3)), by_hand, rtol=1e-13),
        sampled=less_equal((x.mean() - by_hand).abs(), 4 * x.std() / len(x) ** 0.5),
        powers=close(powers, torch.tensor(expected, dtype=torch.float64), rtol=1e-12),
    )


@claim("D5.0.10")
def gaussian_integration_by_parts_holds() -> Evidence:
    """E[X_k f(X)] = Σ_i Σ_ki E[∂_i f(X)] for smooth f and every k, also for singular Σ (Diehl thm. 5.5, proof B)."""
    gaussian, w = centred_gaussian(3), 0.2 * standard_normal(3, seed=4)
    singular = random_gaussian(3, rank=2)
    singular = Gaussian(torch.zeros_like(singular.mean), singular.covariance)
    functions = {
        "cubic": lambda x: x[0] * x[1] ** 2 + x[2] ** 3 - x[0],
        "sine": lambda x: (w @ x).sin() * x[1],
        "exponential": lambda x: (w @ x).exp(),
    }
    sides = [
        gaussian_integration_by_parts(f, each, coordinate=k, nodes=16)
        for f in functions.values()
        for each, k in ((gaussian, 0), (gaussian, 2), (singular, 0))
    ]
    return all_of(
        formula=close(
            torch.stack([b.product for b in sides]), torch.stack([b.derivative for b in sides]), rtol=1e-9, atol=1e-9
        ),
        rejected_with_a_mean=raises(
            ValueError, lambda: gaussian_integration_by_parts(functions["sine"], random_gaussian(3))
        ),
    )


@claim("D5.0.10")
def the_regression_residual_is_independent() -> Evidence:
    """X̂ = X − λX₁ is singular and independent of X₁ (Diehl thm. 5.5)."""
    gaussian = centred_gaussian(3)
    split = residual_decomposition(gaussian)
    x = gaussian.sample(100_000, generator=torch.Generator().manual_seed(0))
    rest = residuals(x, split.direction)
    along = torch.outer(split.direction, split.direction) * gaussian.covariance[0, 0]
    is_large = x[:, 0].abs() > gaussian.covariance[0, 0].sqrt()
    scaled = rest[:, 1] / split.residual.covariance[1, 1].sqrt()
    return all_of(
        uncorrelated=less_equal((rest[:, 1:] * x[:, :1]).mean(0).abs(), 0.02 * gaussian.covariance[0, 0]),
        first_coordinate_is_zero=close(rest[:, 0], 0.0, atol=1e-12),
        singular=close(split.residual.rank, 2),
        covariances_add_up=close(split.residual.covariance + along, gaussian.covariance, atol=1e-12),
        same_distribution_where_x1_is_large=accepts(kstest(scaled[is_large].numpy(), "norm").pvalue),
        same_distribution_where_x1_is_small=accepts(kstest(scaled[~is_large].numpy(), "norm").pvalue),
    )


@erratum("D5.0.10", printed="d/dx exp(−x²/2σ²) = exp(−x²/2σ²) (−xσ²)", right="exp(−x²/2σ²) (−x/σ²)")
def the_derivative_divides_by_the_variance() -> Correction:
    """With the printed derivative −σ² ∫ f d/dx p dx would be σ⁴ E[X f(X)], not E[X f(X)] (Diehl thm. 5.5)."""
    variance = 0.5

    def density(x: Tensor) -> Tensor:
        return normal_density(x, mean=0.0, variance=variance)

    expected = expectation_by_quadrature(
        lambda x: variance * 3 * x**2, density, low=-12.0, high=12.0
    )  # σ² E f′ for f = x³
    printed = expectation_by_quadrature(lambda x: variance * x**3 * x * variance, density, low=-12.0, high=12.0)
    corrected = expectation_by_quadrature(lambda x: variance * x**3 * x / variance, density, low=-12.0, high=12.0)
    return Correction(printed=close(printed, expected, rtol=1e-3), corrected=close(corrected, expected, rtol=1e-12))


@erratum("D5.0.10", printed="X̂ = X − λ_i X₁, one λ_i for the whole vector", right="X̂ = X − λ X₁ with the vector λ")
def the_direction_is_a_vector() -> Correction:
    """Subtracting the same multiple of X₁ from every coordinate leaves some correlated with X₁ (Diehl thm. 5.5)."""
    S = centred_gaussian(3).covariance
    direction = residual_decomposition(centred_gaussian(3)).direction

    def residual_covariance(multiple: Tensor) -> Tensor:
        """Covariances of X₁ with X − multiple · X₁."""
        return S[:, 0] - multiple * S[0, 0]

    return Correction(
        printed=close(residual_covariance(direction[1].expand(3)), 0.0, atol=1e-3),
        corrected=close(residual_covariance(direction), 0.0, atol=1e-14),
    )
