"""Claims about the KL divergence of general distributions and of densities (Diehl sec. 6; book sec. 6.1)."""

from itertools import product
from math import e, log

import torch
from torch import Tensor
from torch.distributions import Categorical, Normal
from torch.distributions import kl_divergence as library_divergence

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, raises
from parnassus.probability.distributions.seeded_samples import float64_tensor, random_distributions, standard_normal
from parnassus.probability.divergences.kl_divergence import (
    density_ratio,
    is_absolutely_continuous,
    kl_by_quadrature,
    kl_by_sampling,
    kl_divergence,
)
from parnassus.probability.expectations.expectation import expectation_by_quadrature


def normal(mean: float, std: float) -> Normal:
    return Normal(*torch.tensor([mean, std], dtype=torch.float64))


NARROW, WIDE = normal(0.0, 1.0), normal(1.0, 2**0.5)  # KL(NARROW ‖ WIDE) = ½ log 2


def negative_part(p: Tensor, q: Tensor) -> Tensor:
    """E_P[min(0, log dP/dQ)] of two tables without zeros."""
    ratio: Tensor = p / q
    return (p * ratio.log().clamp(max=0)).sum(-1)


@claim("B6.1-1", "D6.0.1")
def closed_form_quadrature_and_sampling_agree() -> Evidence:
    """KL of two Gaussians in closed form, by quadrature, over fine bins and from samples (Diehl sec. 6)."""
    exact = library_divergence(NARROW, WIDE)
    edges = torch.linspace(-12, 12, 4_001, dtype=torch.float64)
    binned = torch.stack([gaussian.cdf(edges).diff() for gaussian in (NARROW, WIDE)])
    p, q = binned / binned.sum(-1, keepdim=True)
    sampled = kl_by_sampling(NARROW.log_prob, WIDE.log_prob, standard_normal(100_000))
    tables = random_distributions(2, 6)
    return all_of(
        closed_form=close(exact, log(2) / 2, atol=1e-15),
        quadrature=close(kl_by_quadrature(NARROW.log_prob, WIDE.log_prob, low=-12.0, high=12.0), exact, atol=1e-12),
        sum_over_bins=close(kl_divergence(p, q), exact, atol=1e-5),
        bins_underestimate=less_equal(kl_divergence(p, q), exact),
        sampling=less_equal((sampled.mean - exact).abs(), 4 * sampled.standard_error),
        tables=close(
            kl_divergence(*tables), library_divergence(*(Categorical(probs=each) for each in tables)), atol=1e-14
        ),
    )


@claim("D6.0.1")
def the_density_ratio_transforms_q_into_p() -> Evidence:
    """P(A) = Σ_A (dP/dQ) Q for all 2⁵ events, and KL = E_P log dP/dQ; without P ≪ Q it is +∞ (Diehl sec. 6)."""
    p, q = random_distributions(2, 5, seed=3)
    p = torch.cat([p[:-1], float64_tensor(0.0)]) / p[:-1].sum()  # an outcome with P = 0 < Q
    events = torch.tensor(list(product((0.0, 1.0), repeat=5)), dtype=torch.float64)
    ratio = density_ratio(p, q)
    possible = p > 0
    return all_of(
        every_event=close(events @ (ratio * q), events @ p, atol=1e-15),
        mean_log_ratio=close((p * ratio.log())[possible].sum(), kl_divergence(p, q), atol=1e-14),
        absolutely_continuous_one_way=close(
            torch.stack([is_absolutely_continuous(p, q), is_absolutely_continuous(q, p)]), float64_tensor(1.0, 0.0)
        ),
        infinite_otherwise=close(kl_divergence(q, p), torch.inf),
        ratio_rejected_otherwise=raises(ValueError, lambda: density_ratio(q, p)),
    )


@claim("D6.0.3")
def divergence_is_not_symmetric() -> Evidence:
    """Exercise: for P = (½, ½, 0) and Q = (¼, ¼, ½) KL(P ‖ Q) = log 2 and KL(Q ‖ P) = +∞ (Diehl sec. 6)."""
    p, q = float64_tensor(0.5, 0.5, 0.0), float64_tensor(0.25, 0.25, 0.5)
    return all_of(forward=close(kl_divergence(p, q), log(2), atol=1e-15), reverse=close(kl_divergence(q, p), torch.inf))


@claim("D6.0.5")
def the_negative_part_is_bounded_by_one_over_e() -> Evidence:
    """E_P[log⁻ dP/dQ] ≤ 1/e, so KL is always defined, also for Cauchy against normal (Diehl lem. 6.2)."""
    p, q = random_distributions(5_000, 4), random_distributions(5_000, 4, seed=1)
    s = torch.linspace(0.001, 0.999, 999, dtype=torch.float64)  # P(1) = s/e and Q(1) = s
    worst = negative_part(torch.stack([s / e, 1 - s / e], -1), torch.stack([s, 1 - s], -1))
    cauchy = torch.distributions.Cauchy(float64_tensor(0.0)[0], float64_tensor(1.0)[0])
    half_widths = (1e2, 1e3, 1e4)
    divergences = torch.stack(
        [kl_by_quadrature(cauchy.log_prob, NARROW.log_prob, low=-r, high=r, points=400_001) for r in half_widths]
    )
    negative = expectation_by_quadrature(
        lambda x: (cauchy.log_prob(x) - NARROW.log_prob(x)).clamp(max=0),
        lambda x: cauchy.log_prob(x).exp(),
        low=-1e3,
        high=1e3,
        points=400_001,
    )
    return all_of(
        tables=greater_equal(negative_part(p, q), -1 / e),
        nearly_attained=close(worst.min(), -1 / e, atol=1e-3),
        cauchy_against_normal=greater_equal(negative, -1 / e),
        its_divergence_is_unbounded=greater_equal(divergences.diff(), 100.0),
    )


@claim("D6.0.5")
def diffeomorphisms_preserve_the_divergence() -> Evidence:
    """KL(Ψ_*P ‖ Ψ_*Q) = KL(P ‖ Q) for Ψ = sinh; the non-injective |x| decreases it (Diehl lem. 6.2)."""

    def density_of_sinh(normal: Normal, y: Tensor) -> Tensor:  # density of sinh(X): p(arsinh y) / √(1 + y²)
        log_density: Tensor = normal.log_prob(y.asinh())
        return log_density - torch.log1p(y.square()) / 2

    y = torch.linspace(-9, 9, 400_001, dtype=torch.float64).sinh()
    p, q = density_of_sinh(NARROW, y), density_of_sinh(WIDE, y)
    integral = torch.trapezoid(p.exp() * (p - q), y)

    def density_of_modulus(normal: Normal, x: Tensor) -> Tensor:  # density of |X| on the positive half
        return torch.logaddexp(normal.log_prob(x), normal.log_prob(-x))

    modulus_divergence = kl_by_quadrature(
        lambda x: density_of_modulus(NARROW, x),
        lambda x: density_of_modulus(WIDE, x),
        low=0.0,
        high=15.0,
        points=200_001,
    )
    return all_of(
        mass=close(torch.trapezoid(p.exp(), y), 1.0, atol=1e-8),
        sinh=close(integral, 0.346574, atol=1e-6),
        modulus_decreases=less_equal(modulus_divergence, 0.34),
        modulus_keeps_some=greater_equal(modulus_divergence, 0.01),
    )
