"""Claims about conditional distributions of Gaussian vectors (Diehl ex. 5.6)."""

from math import pi

import torch
from scipy.stats import kstest
from torch import Tensor
from torch.distributions import MultivariateNormal

from parnassus.atlas import (
    Correction,
    Evidence,
    accepts,
    all_of,
    claim,
    close,
    erratum,
    greater_equal,
    less_equal,
    raises,
    rejects,
)
from parnassus.probability.claims.gaussians import COVARIANCE, MEAN, random_gaussian
from parnassus.probability.distributions.gaussian import Gaussian, joint_of_independent
from parnassus.probability.distributions.gaussian_conditioning import condition, solve_by_cholesky
from parnassus.probability.distributions.seeded_samples import standard_normal


@claim("D5.0.11")
def conditioning_is_the_ratio_of_densities() -> Evidence:
    """p(x|y) = p(x, y) / p(y); Σ_{X|y} is the inverse of a block of Σ⁻¹, independent of y (Diehl ex. 5.6)."""
    joint, observed_indices = random_gaussian(5), [1, 3]
    z = standard_normal(30, 5, seed=9)
    conditional = condition(joint, z[:, observed_indices], observed=observed_indices)
    by_cholesky = condition(joint, z[:, observed_indices], observed=observed_indices, solve=solve_by_cholesky)
    hidden = [0, 2, 4]
    ratio = joint.log_prob(z) - joint.marginal(observed_indices).log_prob(z[:, observed_indices])
    block = torch.linalg.inv(torch.linalg.inv(joint.covariance)[hidden][:, hidden])
    return all_of(
        density=close(conditional.log_prob(z[:, hidden]), ratio, rtol=1e-7),
        covariance=close(conditional.covariance, block, atol=1e-10),
        by_cholesky=close(by_cholesky.mean, conditional.mean, atol=1e-9),
        one_at_a_time=close(_condition_sequentially(joint, z[0]), conditional.mean[0], atol=1e-9),
    )


def _condition_sequentially(joint: Gaussian, z: Tensor) -> Tensor:
    """Condition on coordinate 3, then on coordinate 1 of the remaining ones."""
    return condition(condition(joint, z[[3]], observed=[3]), z[[1]], observed=[1]).mean


@claim("D5.0.11")
def conditioning_agrees_with_rejection_sampling() -> Evidence:
    """Samples with Y near y have the conditional distribution; Cov X = E Cov[X|Y] + Cov E[X|Y] (Diehl ex. 5.6)."""
    joint = Gaussian(MEAN, COVARIANCE)
    z = joint.sample(500_000, generator=torch.Generator().manual_seed(0))
    accepted = z[(z[:, 1] - 1.0).abs() < 0.02, 0]
    conditional = condition(joint, torch.ones(1, dtype=torch.float64), observed=[1])
    standardised = (accepted - conditional.mean) / conditional.covariance[0].sqrt()
    large, observed_indices = random_gaussian(4), [0, 2]
    means = condition(
        large,
        large.marginal(observed_indices).sample(50_000, generator=torch.Generator().manual_seed(1)),
        observed=observed_indices,
    )
    hidden = large.marginal([1, 3])
    explained = means.mean.mT.cov()
    return all_of(
        accepted=greater_equal(len(accepted), 3_000),
        rejection=accepts(kstest(standardised.numpy(), "norm").pvalue),
        unconditional_is_rejected=rejects(
            kstest(((accepted - MEAN[0]) / COVARIANCE[0, 0].sqrt()).numpy(), "norm").pvalue
        ),
        tower_mean=close(means.mean.mean(0), hidden.mean, atol=0.05),
        tower_covariance=close(means.covariance + explained, hidden.covariance, rtol=0.03, atol=0.03),
    )


@claim("D5.0.11", "D5.0.8")
def conditioning_works_with_singular_covariances() -> Evidence:
    """Two coordinates of a rank-2 Gaussian in ℝ⁴, or three with singular Σ_YY, determine the others (Diehl ex. 5.6)."""
    gaussian = random_gaussian(4, rank=2)
    z = gaussian.sample(20, generator=torch.Generator().manual_seed(0))
    two = condition(gaussian, z[:, :2], observed=[0, 1])
    three = condition(gaussian, z[:, :3], observed=[0, 1, 2])
    return all_of(
        known_exactly=close(two.mean, z[:, 2:], atol=1e-8),
        no_variance_left=close(two.covariance, 0.0, atol=1e-12),
        singular_observed_indices=close(three.mean, z[:, 3:], atol=1e-8),
        cholesky_is_rejected=raises(
            ValueError, lambda: condition(gaussian, z[:, :3], observed=[0, 1, 2], solve=solve_by_cholesky)
        ),
        values_off_the_support_are_rejected=raises(
            ValueError, lambda: condition(gaussian, z[:, :3] + 1, observed=[0, 1, 2])
        ),
    )


@erratum(
    "D5.0.11",
    printed="Σ⁻¹ = [[1/Σ_XX, −Σ_XY/(Σ_XX Σ_YY)], […, 1/Σ_YY]]",
    right="[[Σ_YY, −Σ_XY], [−Σ_XY, Σ_XX]] / det Σ",
)
def the_second_form_of_the_inverse_is_wrong() -> Correction:
    """The inverse of a 2×2 covariance is the first printed form; the second lacks the determinant (Diehl ex. 5.6)."""
    (xx, xy), (_, yy) = COVARIANCE
    second = torch.stack([1 / xx, -xy / (xx * yy), -xy / (xx * yy), 1 / yy]).view(2, 2)
    first = torch.stack([yy, -xy, -xy, xx]).view(2, 2) / (xx * yy - xy**2)
    unit = torch.eye(2, dtype=torch.float64)
    conditional = condition(Gaussian(MEAN, COVARIANCE), MEAN[1:], observed=[1])
    return Correction(
        printed=close(second @ COVARIANCE, unit, atol=1e-3),
        corrected=all_of(
            inverse=close(first @ COVARIANCE, unit, atol=1e-15),
            conditional_variance=close(conditional.covariance, 1 / first[0, 0], rtol=1e-12),
        ),
    )


@erratum("D5.0.11", printed="… − 2 Σ_XY² (x − μ_X)(y − μ_Y)", right="… − 2 Σ_XY (x − μ_X)(y − μ_Y)")
def the_cross_term_has_no_square() -> Correction:
    """In the exponent of the joint density the covariance appears to the first power (Diehl ex. 5.6)."""
    points = standard_normal(200, 2)
    exact = MultivariateNormal(MEAN, COVARIANCE).log_prob(points)
    return Correction(
        printed=close(_printed_log_density(points, power=2), exact, atol=1e-3),
        corrected=close(_printed_log_density(points, power=1), exact, atol=1e-12),
    )


def _printed_log_density(points: Tensor, *, power: int) -> Tensor:
    (xx, xy), (_, yy) = COVARIANCE
    x, y = (points - MEAN).unbind(1)
    determinant = xx * yy - xy**2
    square = yy * x.square() + xx * y.square() - 2 * xy**power * x * y
    log_density: Tensor = -(2 * pi * determinant.sqrt()).log() - square / (2 * determinant)
    return log_density


@erratum("D5.0.11", printed="p_Y(y) = exp(…) / (√(2π) Σ_YY)", right="exp(…) / √(2π Σ_YY)")
def the_square_root_includes_the_variance() -> Correction:
    """The joint density divided by the printed p_Y does not integrate to one (Diehl ex. 5.6)."""
    x, y = torch.linspace(-12, 12, 481, dtype=torch.float64), torch.tensor(0.7, dtype=torch.float64)
    joint = _printed_log_density(torch.stack([x, y.expand(481)], 1), power=1).exp()
    yy = COVARIANCE[1, 1]
    kernel = (-((y - MEAN[1]) ** 2) / (2 * yy)).exp()
    conditional = condition(Gaussian(MEAN, COVARIANCE), y[None], observed=[1])
    density = joint / (kernel / (2 * pi * yy).sqrt())
    return Correction(
        printed=close(torch.trapezoid(joint / (kernel / ((2 * pi) ** 0.5 * yy)), x), 1.0, atol=1e-3),
        corrected=all_of(
            integral=close(torch.trapezoid(density, x), 1.0, atol=1e-12),
            conditional_density=close(conditional.log_prob(x[:, None]).exp(), density, atol=1e-12),
        ),
    )


@claim("D5.0.11")
def conditioning_never_increases_the_covariance() -> Evidence:
    """Σ_XX − Σ_{X|y} is positive semi-definite, and 0 where Σ_XY = 0 (Diehl ex. 5.6)."""
    joint = random_gaussian(6)
    conditional = condition(joint, torch.zeros(2, dtype=torch.float64), observed=[4, 5])
    independent = joint_of_independent(random_gaussian(2), random_gaussian(2, seed=5))
    independent_conditional = condition(independent, standard_normal(10, 2), observed=[2, 3])
    return all_of(
        positive_semidefinite=greater_equal(
            torch.linalg.eigvalsh(joint.covariance[:4, :4] - conditional.covariance), -1e-12
        ),
        rank_at_most_the_number_observed=less_equal(
            torch.linalg.matrix_rank(joint.covariance[:4, :4] - conditional.covariance, atol=1e-9), 2
        ),
        independent_mean=close(independent_conditional.mean, independent.mean[:2], atol=1e-13),
        independent_covariance=close(independent_conditional.covariance, independent.covariance[:2, :2], atol=1e-13),
    )
