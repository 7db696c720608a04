"""Claims about multivariate Gaussians: density, closure properties, singular covariances (Diehl sec. 5)."""

import torch
from scipy.stats import chi2, kstest, multivariate_normal
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
)
from parnassus.probability.distributions.gaussian import (
    Gaussian,
    cholesky_root,
    eigen_root,
    gaussian_log_density,
    independent_sum,
    joint_of_independent,
)
from parnassus.probability.distributions.independence import event_dependence
from parnassus.probability.distributions.joint_density import GridDensity
from parnassus.probability.distributions.seeded_samples import standard_normal
from parnassus.probability.expectations.gauss_hermite import gaussian_expectation

MEAN = torch.tensor([0.3, -0.2], dtype=torch.float64)
COVARIANCE = torch.tensor([[1.0, 0.6], [0.6, 2.0]], dtype=torch.float64)


def random_gaussian(dim: int, *, rank: int | None = None, seed: int = 0) -> Gaussian:
    """A Gaussian with random mean and random covariance of the given rank."""
    factor = standard_normal(dim, rank or dim, seed=seed)
    return Gaussian(standard_normal(dim, seed=seed + 1), factor @ factor.mT)


@claim("D5.0.6")
def the_density_agrees_with_torch_and_scipy() -> Evidence:
    """The log-density agrees with torch and SciPy in dimensions 1 to 6, and integrates to 1 in two (Diehl sec. 5)."""
    gaussians = [random_gaussian(dim, seed=dim) for dim in range(1, 7)]
    points = [standard_normal(50, dim, seed=9) for dim in range(1, 7)]
    log_densities = [
        gaussian_log_density(x, mean=gaussian.mean, covariance=gaussian.covariance)
        for x, gaussian in zip(points, gaussians, strict=True)
    ]
    by_torch = [
        MultivariateNormal(gaussian.mean, gaussian.covariance).log_prob(x)
        for x, gaussian in zip(points, gaussians, strict=True)
    ]
    by_scipy = [
        torch.from_numpy(multivariate_normal(gaussian.mean.numpy(), gaussian.covariance.numpy()).logpdf(x.numpy()))
        for x, gaussian in zip(points, gaussians, strict=True)
    ]
    grid = torch.linspace(-14, 14, 281, dtype=torch.float64)
    log_density = gaussian_log_density(torch.cartesian_prod(grid, grid), mean=MEAN, covariance=COVARIANCE)
    return all_of(
        torch=close(torch.cat(log_densities), torch.cat(by_torch), rtol=1e-9),
        scipy=close(torch.cat(log_densities), torch.cat(by_scipy), rtol=1e-9),
        whole_support=close(
            torch.cat([gaussian.log_prob(x) for x, gaussian in zip(points, gaussians, strict=True)]),
            torch.cat(log_densities),
            rtol=1e-9,
        ),
        mass=close(GridDensity(grid, grid, log_density.exp().view(281, 281)).mass, 1.0, atol=1e-12),
    )


@claim("D5.0.6")
def samples_have_the_right_distribution() -> Evidence:
    """Samples have mean μ and covariance Σ, and (x − μ)ᵀΣ⁻¹(x − μ) follows χ² (Diehl sec. 5)."""
    gaussian = random_gaussian(4)
    generator = torch.Generator().manual_seed(0)
    samples = {root: gaussian.sample(40_000, root=root, generator=generator) for root in (cholesky_root, eigen_root)}
    squares = {root: _mahalanobis(x, gaussian) for root, x in samples.items()}
    size = gaussian.covariance.diagonal().max()
    return all_of(
        cholesky_mean=close(samples[cholesky_root].mean(0), gaussian.mean, atol=float(0.03 * size.sqrt())),
        cholesky_covariance=close(samples[cholesky_root].mT.cov(), gaussian.covariance, atol=float(0.04 * size)),
        cholesky_chi_square=accepts(kstest(squares[cholesky_root].numpy(), chi2(4).cdf).pvalue),
        eigen_covariance=close(samples[eigen_root].mT.cov(), gaussian.covariance, atol=float(0.04 * size)),
        eigen_chi_square=accepts(kstest(squares[eigen_root].numpy(), chi2(4).cdf).pvalue),
        roots=close(
            cholesky_root(gaussian.covariance) @ cholesky_root(gaussian.covariance).mT, gaussian.covariance, atol=1e-12
        ),
        cholesky_rejects_a_singular_covariance=raises(
            ValueError, lambda: cholesky_root(torch.ones(2, 2, dtype=torch.float64))
        ),
    )


def _mahalanobis(x: Tensor, gaussian: Gaussian) -> Tensor:
    centred = x - gaussian.mean
    squares: Tensor = (centred * torch.linalg.solve(gaussian.covariance, centred.mT).mT).sum(1)
    return squares


@claim("D5.0.7")
def normals_are_closed_under_affine_maps_and_sums() -> Evidence:
    """Means, covariances and moment generating functions of AX + b and X + Y agree with quadrature (Diehl thm. 5.3)."""
    x, y = random_gaussian(3), random_gaussian(3, seed=5)
    A, b, a = standard_normal(2, 3, seed=7), standard_normal(2, seed=8), 0.3 * standard_normal(3, seed=9)
    image, pair = x.affine(A, b), joint_of_independent(x, y)
    total = independent_sum(x, y)
    add = torch.cat([torch.eye(3), torch.eye(3)], 1).double()
    alike = Gaussian(torch.zeros(3, dtype=torch.float64), x.covariance)
    halved = independent_sum(alike, alike).affine(torch.eye(3, dtype=torch.float64) / 2**0.5)
    centred = gaussian_expectation(lambda v: torch.outer(A @ (v - x.mean), A @ (v - x.mean)), x, nodes=4)
    return all_of(
        mean=close(gaussian_expectation(lambda v: v, x, nodes=3), x.mean, atol=1e-12),
        image_mean=close(gaussian_expectation(lambda v: A @ v + b, x, nodes=3), image.mean, atol=1e-12),
        image_covariance=close(centred, image.covariance, atol=1e-11),
        image_exponential=close(
            gaussian_expectation(lambda v: (a[:2] @ (A @ v + b)).exp(), x, nodes=40),
            image.moment_generating_function(a[:2]),
            rtol=1e-9,
        ),
        sum_is_an_affine_image_of_the_pair=close(pair.affine(add).covariance, total.covariance, atol=1e-12),
        sum_mean=close(pair.affine(add).mean, total.mean, atol=1e-12),
        sum_exponential=close(
            total.moment_generating_function(a),
            x.moment_generating_function(a) * y.moment_generating_function(a),
            rtol=1e-12,
        ),
        sum_over_root_two=close(halved.covariance, x.covariance, rtol=1e-12, atol=1e-14),
    )


@claim("D5.0.7")
def jointly_normal_and_uncorrelated_means_independent() -> Evidence:
    """With a block-diagonal Σ the density is a product; X and SX, S a random sign, are dependent (Diehl thm. 5.3)."""
    x, y = random_gaussian(2), random_gaussian(3, seed=5)
    pair, points = joint_of_independent(x, y), standard_normal(100, 5, seed=9)
    draws = standard_normal(100_000)
    signs = (standard_normal(100_000, seed=1) > 0).double() * 2 - 1
    flipped = draws * signs
    table = torch.histogramdd(torch.stack([draws, flipped], 1), [3, 3], range=[-1.5, 1.5] * 2).hist
    return all_of(
        product=close(pair.log_prob(points), x.log_prob(points[:, :2]) + y.log_prob(points[:, 2:]), rtol=1e-9),
        marginal=close(pair.marginal([2, 3, 4]).covariance, y.covariance, atol=1e-15),
        flipped_is_normal=accepts(kstest(flipped.numpy(), "norm").pvalue),
        flipped_is_uncorrelated=less_equal((draws * flipped).mean().abs(), 0.02),
        flipped_is_dependent=greater_equal(event_dependence(table / table.sum()), 0.1),
        sum_is_zero_half_the_time=close(((draws + flipped) == 0).double().mean(), 0.5, atol=0.01),
    )


@erratum("D5.0.7", printed="E exp⟨a, X⟩ = exp(½ aᵀΣa)", right="exp(⟨a, μ⟩ + ½ aᵀΣa)")
def the_moment_generating_function_includes_the_mean() -> Correction:
    """The moment generating function of N(μ, Σ) has a factor e^⟨a, μ⟩, omitted in print (Diehl thm. 5.3)."""
    gaussian, a = Gaussian(MEAN, COVARIANCE), torch.tensor([0.5, 0.3], dtype=torch.float64)
    measured = gaussian_expectation(lambda x: (a @ x).exp(), gaussian, nodes=40)
    centred = Gaussian(torch.zeros_like(MEAN), COVARIANCE)
    return Correction(
        printed=close(centred.moment_generating_function(a), measured, rtol=1e-3),
        corrected=close(gaussian.moment_generating_function(a), measured, rtol=1e-12),
    )


@claim("D5.0.8", "D5.0.7")
def a_singular_gaussian_is_supported_on_an_affine_subspace() -> Evidence:
    """Samples of a rank-2 Gaussian in ℝ⁴ lie in μ + range Σ; aᵀX and AX are Gaussian for any a, A (Diehl sec. 5)."""
    gaussian = random_gaussian(4, rank=2)
    x = gaussian.sample(20_000, generator=torch.Generator().manual_seed(0))
    basis = torch.linalg.qr(standard_normal(4, 2)).Q  # of the random factor, hence of the range of Σ
    residual = (x - gaussian.mean) - (x - gaussian.mean) @ basis @ basis.mT
    a, tall = standard_normal(4, seed=3), standard_normal(6, 4, seed=4)
    image = gaussian.affine(tall)
    along = (x @ a - a @ gaussian.mean) / (a @ gaussian.covariance @ a).sqrt()
    return all_of(
        in_the_subspace=close(residual, 0.0, atol=1e-12),
        rank=close(gaussian.rank, 2),
        projection_is_normal=accepts(kstest(along.numpy(), "norm").pvalue),
        more_outputs_than_inputs=close(image.rank, 2),
        image_moments=close((x @ tall.mT).mT.cov(), image.covariance, atol=float(0.06 * image.covariance.abs().max())),
        outside_the_subspace=close(gaussian.log_prob(gaussian.mean + a), -torch.inf),
        density_in_the_subspace=close(
            gaussian.log_prob(x[:20]), _log_density_in_the_subspace(x[:20], gaussian, basis), rtol=1e-8
        ),
    )


def _log_density_in_the_subspace(x: Tensor, gaussian: Gaussian, basis: Tensor) -> Tensor:
    """The density of the two coordinates in an orthonormal basis of the subspace."""
    inside = MultivariateNormal(gaussian.mean @ basis, basis.mT @ gaussian.covariance @ basis)
    log_density: Tensor = inside.log_prob(x @ basis)
    return log_density


@erratum("D5.0.8", printed="N(0, 0) = δ₀ only", right="N(m, 0) = δ_m for every m")
def a_gaussian_of_zero_variance_is_a_point_mass_at_its_mean() -> Correction:
    """aᵀX ~ N(aᵀμ, aᵀΣa) needs point masses away from 0 where aᵀΣa = 0 and aᵀμ ≠ 0 (Diehl sec. 5)."""
    gaussian = Gaussian(MEAN, torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64))
    fixed = gaussian.sample(1_000, generator=torch.Generator().manual_seed(0))[:, 1]
    point = gaussian.marginal([1])
    return Correction(
        printed=close(fixed, 0.0, atol=1e-12),
        corrected=all_of(
            draws=close(fixed, -0.2, atol=1e-15),
            mass=close(
                point.log_prob(torch.tensor([[-0.2], [0.0]], dtype=torch.float64)), torch.tensor([0.0, -torch.inf])
            ),
        ),
    )
