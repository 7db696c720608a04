"""Claims about Gaussian processes, their kernels and sample paths (book sec. 15.1)."""

import torch
from scipy.stats import ks_2samp, kstest
from torch import Tensor

from parnassus.atlas import Evidence, accepts, all_of, claim, close, greater_equal, less_equal, rate, rejects
from parnassus.kernels.gaussian_processes.covariance import (
    BrownianKernel,
    FeatureKernel,
    Kernel,
    LinearKernel,
    OrnsteinUhlenbeckKernel,
    ProductKernel,
    RBFKernel,
    ScaledKernel,
    SumKernel,
)
from parnassus.kernels.gaussian_processes.gp_regression import GPRegression
from parnassus.kernels.gaussian_processes.process import GaussianProcess, brownian_paths
from parnassus.probability import seeded_generator, standard_normal

FINE = 512
"""Steps of the unit interval on which paths are sampled."""


def unit_grid() -> Tensor:
    return torch.linspace(0, 1, FINE + 1, dtype=torch.float64)[:, None]


def cubic_features(x: Tensor) -> Tensor:
    """1, x_1, x_2, x_1 x_2, x_1³: five features of points in the plane."""
    return torch.stack([torch.ones_like(x[:, 0]), x[:, 0], x[:, 1], x[:, 0] * x[:, 1], x[:, 0] ** 3], 1)


def nonlinear_mean(x: Tensor) -> Tensor:
    return 3 + x.sin().sum(1)


@claim("B15.1-1")
@torch.no_grad()
def samples_have_the_mean_and_kernel_of_the_process() -> Evidence:
    """Mean and covariance of S samples differ from μ and K by O(1/√S) (book sec. 15.1)."""
    x, kernel = standard_normal(6, 2), ScaledKernel(RBFKernel(), 2.0)
    process = GaussianProcess(kernel, nonlinear_mean)
    counts, groups, sources = [50, 200, 800, 3_200], 20, seeded_generator()
    means, covariances = [], []
    for count in counts:
        samples = process.sample(x, groups * count, generator=sources).values.view(groups, count, -1)
        deviations = samples - nonlinear_mean(x)
        means.append((samples.mean(1) - nonlinear_mean(x)).square().mean().sqrt())
        covariances.append((deviations.mT @ deviations / count - kernel(x)).square().mean().sqrt())
    first = process.sample(x, 20_000, generator=sources).values[:, 0]
    standard = (first - nonlinear_mean(x)[0]) / kernel.diagonal(x)[0].sqrt()
    return all_of(
        mean=rate(torch.tensor(counts), torch.stack(means), -0.5, atol=0.08),
        covariance=rate(torch.tensor(counts), torch.stack(covariances), -0.5, atol=0.08),
        each_value_is_normal=accepts(float(kstest(standard.numpy(), "norm").pvalue)),
    )


@claim("B15.1-2")
@torch.no_grad()
def brownian_motion_by_two_samplers() -> Evidence:
    """Var y(t) = t and Cov(y(s), y(t)) = min(s, t), by Cholesky factor and by sums of increments (book fig. 15.1)."""
    times, count = torch.linspace(0.1, 2, 20, dtype=torch.float64), 40_000
    by_root = GaussianProcess(BrownianKernel()).sample(times[:, None], count, generator=seeded_generator()).values
    by_sums = brownian_paths(times, count, generator=seeded_generator(1))
    kernel = torch.minimum(times[:, None], times)
    return all_of(
        variance_by_root=close(by_root.var(0), times, rtol=0.03),
        variance_by_sums=close(by_sums.var(0), times, rtol=0.03),
        covariance_by_root=close(by_root.mT.cov(), kernel, atol=0.06),
        covariance_by_sums=close(by_sums.mT.cov(), kernel, atol=0.06),
        same_distribution_at_the_end=accepts(float(ks_2samp(by_root[:, -1].numpy(), by_sums[:, -1].numpy()).pvalue)),
        same_distribution_of_the_maximum=accepts(
            float(ks_2samp(by_root.amax(1).numpy(), by_sums.amax(1).numpy()).pvalue)
        ),
        not_stationary=rejects(float(ks_2samp(by_sums[:, 0].numpy(), by_sums[:, -1].numpy()).pvalue)),
        linear_growth=rate(times, by_sums.var(0), 1.0, atol=0.02),
    )


@claim("B15.1-3")
@torch.no_grad()
def kernels_are_positive_semi_definite() -> Evidence:
    """Kernels, their sums and products are positive semi-definite; a box function is not (book sec. 15.1)."""
    x = standard_normal(80, 2)
    kernels: list[Kernel] = [
        LinearKernel(),
        RBFKernel(0.7),
        OrnsteinUhlenbeckKernel(0.7),
        SumKernel(LinearKernel(), RBFKernel(3.0)),
        ProductKernel(LinearKernel(), OrnsteinUhlenbeckKernel()),
    ]
    matrices = [*(kernel(x) for kernel in kernels), BrownianKernel()(x[:, :1].abs())]
    smallest = torch.stack([torch.linalg.eigvalsh(matrix).min() for matrix in matrices])
    box = (torch.cdist(x, x) < 1).double()
    return all_of(
        kernels=greater_equal(smallest, -1e-12),
        box_function_is_not_a_kernel=less_equal(torch.linalg.eigvalsh(box).min(), -1.0),
    )


@claim("B15.1-3")
@torch.no_grad()
def rbf_paths_are_smooth_and_ornstein_uhlenbeck_paths_rough() -> Evidence:
    """Over a step h, RBF paths change by O(h) and Ornstein-Uhlenbeck paths by O(√h) (book sec. 15.1).

    E (y(x + h) − y(x))² = 2 (1 − K(h)) is h²/s² and 2h/s for small h. The quadratic variation per unit length is 0 for
    RBF and 2/s for Ornstein-Uhlenbeck.
    """
    smooth, rough = (
        GaussianProcess(kernel).sample(unit_grid(), 200, generator=seeded_generator())
        for kernel in (RBFKernel(0.5), OrnsteinUhlenbeckKernel(0.5))
    )
    strides = [1, 2, 4, 8, 16]
    steps = torch.tensor(strides, dtype=torch.float64) / FINE
    return all_of(
        rbf=rate(steps, smooth.rms_increments(strides), 1.0, atol=0.02),
        ornstein_uhlenbeck=rate(steps, rough.rms_increments(strides), 0.5, atol=0.03),
        quadratic_variation_of_ornstein_uhlenbeck=close(
            rough.values.diff(dim=1).square().sum(1).mean(), 2 / 0.5, rtol=0.03
        ),
        quadratic_variation_of_rbf=less_equal(smooth.values.diff(dim=1).square().sum(1).mean(), 0.02),
    )


@claim("B15.1-3")
@torch.no_grad()
def linear_paths_are_lines_through_zero() -> Evidence:
    """Every path of K = xᵀx′ is y = wx with w ~ N(0, 1) (book sec. 15.1)."""
    x = torch.linspace(-1, 1, 21, dtype=torch.float64)
    paths = GaussianProcess(LinearKernel()).sample(x[:, None], 2_000, generator=seeded_generator()).values
    slope = paths[:, -1]
    return all_of(
        straight=close(paths, slope[:, None] * x, atol=1e-4),
        through_zero=close(paths[:, 10], 0.0, atol=1e-4),
        slopes_are_standard_normal=accepts(float(kstest(slope.numpy(), "norm").pvalue)),
    )


@claim("B15.1-3")
@torch.no_grad()
def rbf_and_ornstein_uhlenbeck_are_stationary_linear_and_brownian_are_not() -> Evidence:
    """K(x + a, x′ + a) = K(x, x′) for RBF and Ornstein-Uhlenbeck, not for linear and Brownian (book sec. 15.1)."""
    x = standard_normal(12, 1).abs()

    def change(kernel: Kernel) -> Tensor:
        return (kernel(x + 1.7) - kernel(x)).abs().max()

    return all_of(
        rbf=less_equal(change(RBFKernel(0.6)), 1e-14),
        ornstein_uhlenbeck=less_equal(change(OrnsteinUhlenbeckKernel(0.6)), 1e-14),
        linear=greater_equal(change(LinearKernel()), 1.0),
        brownian=close(change(BrownianKernel()), 1.7, rtol=1e-12),
    )


@claim("B15.1-5")
@torch.no_grad()
def linear_models_with_gaussian_weights_are_gaussian_processes() -> Evidence:
    """With w ~ N(0, I), wᵀφ(x) has mean 0 and covariance φ(x)ᵀφ(x′), of rank dim φ at most (book eq. 15.1)."""
    x = 0.7 * standard_normal(40, 2)
    kernel = FeatureKernel(cubic_features)
    counts = [100, 1_000, 10_000]
    errors, sources = [], seeded_generator()
    for count in counts:
        w = torch.randn(20, count, 5, dtype=torch.float64, generator=sources)
        values = w @ cubic_features(x).mT
        errors.append((values.mT @ values / count - kernel(x)).square().mean().sqrt())
    return all_of(
        covariance=rate(torch.tensor(counts), torch.stack(errors), -0.5, atol=0.05),
        rank=close(torch.linalg.matrix_rank(kernel(x)), 5),
        ornstein_uhlenbeck_has_full_rank=close(torch.linalg.matrix_rank(OrnsteinUhlenbeckKernel()(x)), 40),
    )


@claim("B15.1-5")
@torch.no_grad()
def weight_space_and_function_space_predictions_agree() -> Evidence:
    """Conditioning the weights or the process on data gives the same mean and variance (book eq. 15.1).

    w | t ~ N(A⁻¹ Φᵀ t / σ², A⁻¹) with A = I + ΦᵀΦ / σ²
    """
    x, new, noise = standard_normal(30, 2), standard_normal(10, 2, seed=1), 0.3
    t = nonlinear_mean(x)
    features, queries = cubic_features(x), cubic_features(new)
    inverse = torch.linalg.inv(torch.eye(5, dtype=torch.float64) + features.mT @ features / noise)
    weights = inverse @ features.mT @ t / noise
    prediction = GPRegression.fit(FeatureKernel(cubic_features), x, t, noise_variance=noise).predict(new)
    return all_of(
        mean=close(prediction.mean, queries @ weights, rtol=1e-9),
        variance=close(prediction.variance, (queries @ inverse * queries).sum(1), rtol=1e-9, atol=1e-12),
    )
