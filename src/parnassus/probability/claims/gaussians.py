"""Claims about normal vectors: densities, closure and singular laws (Diehl sec. 5)."""

import torch
from scipy.stats import chi2, kstest, multivariate_normal
from torch import Tensor
from torch.distributions import MultivariateNormal

from parnassus.atlas import (
    Correction,
    Evidence,
    accepts,
    all_of,
    at_least,
    at_most,
    claim,
    close,
    erratum,
    raises,
)
from parnassus.probability.claims.expectations import normals
from parnassus.probability.densities import GridDensity
from parnassus.probability.gaussian import (
    Gaussian,
    cholesky_root,
    eigen_root,
    gaussian_log_density,
    independent_pair,
    independent_sum,
)
from parnassus.probability.gaussian_quadrature import gaussian_expectation
from parnassus.probability.independence import dependence_in_events

MEAN = torch.tensor([0.3, -0.2], dtype=torch.float64)
COVARIANCE = torch.tensor([[1.0, 0.6], [0.6, 2.0]], dtype=torch.float64)


def random_gaussian(dim: int, *, rank: int | None = None, seed: int = 0) -> Gaussian:
    """A normal law with a random mean and a random covariance of the given rank."""
    factor = normals(dim, rank or dim, seed=seed)
    return Gaussian(normals(dim, seed=seed + 1), factor @ factor.mT)


@claim("D5.0.6")
def the_density_is_that_of_the_libraries() -> Evidence:
    """The log-density is that of torch and SciPy in dimensions 1 to 6; in two it integrates to 1 (Diehl sec. 5)."""
    laws = [random_gaussian(dim, seed=dim) for dim in range(1, 7)]
    points = [normals(50, dim, seed=9) for dim in range(1, 7)]
    ours = [
        gaussian_log_density(x, mean=law.mean, covariance=law.covariance) for x, law in zip(points, laws, strict=True)
    ]
    by_torch = [MultivariateNormal(law.mean, law.covariance).log_prob(x) for x, law in zip(points, laws, strict=True)]
    by_scipy = [
        torch.from_numpy(multivariate_normal(law.mean.numpy(), law.covariance.numpy()).logpdf(x.numpy()))
        for x, law in zip(points, laws, strict=True)
    ]
    grid = torch.linspace(-14, 14, 281, dtype=torch.float64)
    log_density = gaussian_log_density(torch.cartesian_prod(grid, grid), mean=MEAN, covariance=COVARIANCE)
    return all_of(
        torch=close(torch.cat(ours), torch.cat(by_torch), rtol=1e-9),
        scipy=close(torch.cat(ours), torch.cat(by_scipy), rtol=1e-9),
        whole_support=close(
            torch.cat([law.log_prob(x) for x, law in zip(points, laws, strict=True)]), torch.cat(ours), rtol=1e-9
        ),
        mass=close(GridDensity(grid, grid, log_density.exp().view(281, 281)).mass, 1.0, atol=1e-12),
    )


@claim("D5.0.6")
def draws_have_the_law_they_should() -> Evidence:
    """With either root, mean and covariance come out, and (x − μ)ᵀΣ⁻¹(x − μ) follows χ² (Diehl sec. 5)."""
    law = random_gaussian(4)
    source = torch.Generator().manual_seed(0)
    samples = {root: law.sample(40_000, root=root, generator=source) for root in (cholesky_root, eigen_root)}
    squares = {root: _mahalanobis(x, law) for root, x in samples.items()}
    size = law.covariance.diagonal().max()
    return all_of(
        cholesky_mean=close(samples[cholesky_root].mean(0), law.mean, atol=float(0.03 * size.sqrt())),
        cholesky_covariance=close(samples[cholesky_root].mT.cov(), law.covariance, atol=float(0.04 * size)),
        cholesky_law=accepts(kstest(squares[cholesky_root].numpy(), chi2(4).cdf).pvalue),
        eigen_covariance=close(samples[eigen_root].mT.cov(), law.covariance, atol=float(0.04 * size)),
        eigen_law=accepts(kstest(squares[eigen_root].numpy(), chi2(4).cdf).pvalue),
        roots=close(cholesky_root(law.covariance) @ cholesky_root(law.covariance).mT, law.covariance, atol=1e-12),
        no_root_of_a_singular_one=raises(ValueError, lambda: cholesky_root(torch.ones(2, 2, dtype=torch.float64))),
    )


def _mahalanobis(x: Tensor, law: Gaussian) -> Tensor:
    away = x - law.mean
    squares: Tensor = (away * torch.linalg.solve(law.covariance, away.mT).mT).sum(1)
    return squares


@claim("D5.0.7")
def normals_are_closed_under_affine_maps_and_sums() -> Evidence:
    """Means, covariances and exponential moments of AX + b and X + Y are those stated (Diehl thm. 5.3)."""
    x, y = random_gaussian(3), random_gaussian(3, seed=5)
    A, b, a = normals(2, 3, seed=7), normals(2, seed=8), 0.3 * normals(3, seed=9)
    image, both = x.affine(A, b), independent_pair(x, y)
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
            image.exponential_moment(a[:2]),
            rtol=1e-9,
        ),
        sum_is_an_image_of_the_pair=close(both.affine(add).covariance, total.covariance, atol=1e-12),
        sum_mean=close(both.affine(add).mean, total.mean, atol=1e-12),
        sum_exponential=close(
            total.exponential_moment(a), x.exponential_moment(a) * y.exponential_moment(a), rtol=1e-12
        ),
        sum_over_root_two=close(halved.covariance, x.covariance, rtol=1e-12, atol=1e-14),
    )


@claim("D5.0.7")
def jointly_normal_and_uncorrelated_means_independent() -> Evidence:
    """With a block-diagonal Σ the density is a product; X and SX, S a random sign, are dependent (Diehl thm. 5.3)."""
    x, y = random_gaussian(2), random_gaussian(3, seed=5)
    both, points = independent_pair(x, y), normals(100, 5, seed=9)
    draws = normals(100_000)
    signs = (normals(100_000, seed=1) > 0).double() * 2 - 1
    mirrored = draws * signs
    table = torch.histogramdd(torch.stack([draws, mirrored], 1), [3, 3], range=[-1.5, 1.5] * 2).hist
    return all_of(
        product=close(both.log_prob(points), x.log_prob(points[:, :2]) + y.log_prob(points[:, 2:]), rtol=1e-9),
        marginal_again=close(both.marginal([2, 3, 4]).covariance, y.covariance, atol=1e-15),
        mirrored_is_normal=accepts(kstest(mirrored.numpy(), "norm").pvalue),
        mirrored_is_uncorrelated=at_most((draws * mirrored).mean().abs(), 0.02),
        mirrored_is_dependent=at_least(dependence_in_events(table / table.sum()), 0.1),
        sum_is_zero_half_the_time=close(((draws + mirrored) == 0).double().mean(), 0.5, atol=0.01),
    )


@erratum("D5.0.7", printed="E exp⟨a, X⟩ = exp(½ aᵀΣa)", right="exp(⟨a, μ⟩ + ½ aᵀΣa)")
def exponential_moments_know_the_mean() -> Correction:
    """The moment generating function of N(μ, Σ) has a factor e^⟨a, μ⟩ that is not printed (Diehl thm. 5.3)."""
    law, a = Gaussian(MEAN, COVARIANCE), torch.tensor([0.5, 0.3], dtype=torch.float64)
    measured = gaussian_expectation(lambda x: (a @ x).exp(), law, nodes=40)
    centred = Gaussian(torch.zeros_like(MEAN), COVARIANCE)
    return Correction(
        printed=close(centred.exponential_moment(a), measured, rtol=1e-3),
        corrected=close(law.exponential_moment(a), measured, rtol=1e-12),
    )


@claim("D5.0.8", "D5.0.7")
def a_singular_normal_stays_in_its_plane() -> Evidence:
    """Draws of a rank-2 law in ℝ⁴ lie in μ + range Σ; aᵀX is normal, and so is AX for any A (Diehl sec. 5)."""
    law = random_gaussian(4, rank=2)
    x = law.sample(20_000, generator=torch.Generator().manual_seed(0))
    basis = torch.linalg.qr(normals(4, 2)).Q  # of the random factor, so of the range of Σ
    left = (x - law.mean) - (x - law.mean) @ basis @ basis.mT
    a, tall = normals(4, seed=3), normals(6, 4, seed=4)
    image = law.affine(tall)
    along = (x @ a - a @ law.mean) / (a @ law.covariance @ a).sqrt()
    return all_of(
        in_the_plane=close(left, 0.0, atol=1e-12),
        rank=close(law.rank, 2),
        projection_is_normal=accepts(kstest(along.numpy(), "norm").pvalue),
        more_outputs_than_inputs=close(image.rank, 2),
        image_moments=close((x @ tall.mT).mT.cov(), image.covariance, atol=float(0.06 * image.covariance.abs().max())),
        off_the_plane=close(law.log_prob(law.mean + a), -torch.inf),
        area_density=close(law.log_prob(x[:20]), _log_density_in_the_plane(x[:20], law, basis), rtol=1e-8),
    )


def _log_density_in_the_plane(x: Tensor, law: Gaussian, basis: Tensor) -> Tensor:
    """The regular density of the two coordinates in an orthonormal basis of the plane."""
    inside = MultivariateNormal(law.mean @ basis, basis.mT @ law.covariance @ basis)
    log_density: Tensor = inside.log_prob(x @ basis)
    return log_density


@erratum("D5.0.8", printed="N(0, 0) = δ₀ only", right="N(m, 0) = δ_m for every m")
def without_variance_all_mass_is_at_the_mean() -> Correction:
    """aᵀX ~ N(aᵀμ, aᵀΣa) needs point masses away from 0 wherever aᵀΣa = 0 and aᵀμ ≠ 0 (Diehl sec. 5)."""
    law = Gaussian(MEAN, torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64))
    fixed = law.sample(1_000, generator=torch.Generator().manual_seed(0))[:, 1]
    point = law.marginal([1])
    return Correction(
        printed=close(fixed, 0.0, atol=1e-12),
        corrected=all_of(
            draws=close(fixed, -0.2, atol=1e-15),
            mass=close(
                point.log_prob(torch.tensor([[-0.2], [0.0]], dtype=torch.float64)), torch.tensor([0.0, -torch.inf])
            ),
        ),
    )
