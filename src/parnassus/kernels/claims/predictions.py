"""Claims about Gaussian processes: samples, large training sets, calibration, model selection (book sec. 15.1)."""

from math import log, pi

import torch
from torch import Tensor
from torch.distributions import MultivariateNormal, Normal

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.kernels.gaussian_processes.blocked_regression import BlockedRegression
from parnassus.kernels.gaussian_processes.calibration import (
    CalibrationCurve,
    class_probabilities,
    negative_log_density,
    reliability,
    root_mean_squared_error,
    wilson_interval,
)
from parnassus.kernels.gaussian_processes.covariance import OrnsteinUhlenbeckKernel, RBFKernel, ScaledKernel
from parnassus.kernels.gaussian_processes.gpytorch_kernel import as_gpytorch
from parnassus.kernels.gaussian_processes.model_selection import select_by_evidence, select_by_validation
from parnassus.kernels.gaussian_processes.process import GaussianProcess, zero_mean
from parnassus.kernels.solvers.kernel_matrix import KernelMatrix
from parnassus.kernels.solvers.linear_solvers import CholeskySolver, ConjugateGradients, choose_solver
from parnassus.probability import seeded_generator, standard_normal

X = torch.tensor([[0.0], [0.3], [1.0], [2.5]], dtype=torch.float64)


def kernel_by_hand(x: Tensor, y: Tensor, length: float, power: int) -> Tensor:
    """exp(−d²/2s²) for `power` 2 and exp(−d/s) for 1, entry by entry."""
    distance = (x[:, None] - y[None]).square().sum(2).sqrt()
    return torch.exp(-(distance**2) / (2 * length**2)) if power == 2 else torch.exp(-distance / length)


@claim("B15.1-1", "B15.1-3", "B15.1-4")
@torch.no_grad()
def sampled_paths_have_the_covariance_of_their_kernel() -> Evidence:
    """RBF paths are smooth, increments ∝ h; Ornstein-Uhlenbeck paths rough, increments ∝ √h (book sec. 15.1).

    Mean 0 and covariance v K at any points.
    """
    kernels = {"rbf": RBFKernel(0.8), "ornstein_uhlenbeck": OrnsteinUhlenbeckKernel(0.8)}
    parts, grid = {}, torch.linspace(0, 1, 201, dtype=torch.float64)[:, None]
    for power, (name, kernel) in zip((2, 1), kernels.items(), strict=True):
        process = GaussianProcess(ScaledKernel(kernel.double(), 2.5).double())
        paths = process.sample(X, 100_000, generator=seeded_generator())
        exact = 2.5 * kernel_by_hand(X, X, 0.8, power)
        fine = process.sample(grid, 400, generator=seeded_generator()).rms_increments((1, 4))
        parts[f"{name}_kernel"] = close(process.kernel(X), exact, rtol=1e-9)
        parts[f"{name}_diagonal"] = close(process.variances(X), 2.5, rtol=1e-12)
        parts[f"{name}_covariance"] = close(paths.values.mT.cov(), exact, atol=0.05)
        parts[f"{name}_mean"] = close(paths.values.mean(0), zero_mean(X), atol=0.02)
        parts[f"{name}_growth_of_increments"] = close(fine[1] / fine[0], 4.0 if power == 2 else 2.0, rtol=0.03)
    return all_of(**parts)


@claim("B15.1-7", "B15.3-5")
@torch.no_grad()
def regression_in_blocks_has_the_moments_of_the_formulas() -> Evidence:
    """kᵀ(K + ρI)⁻¹t and v(K(x, x) − kᵀ(K + ρI)⁻¹k) + vρ, v = tᵀ(K + ρI)⁻¹t/n, by either solver (book eqs. 15.9-10)."""
    x, new, ratio = standard_normal(60, 2), standard_normal(9, 2, seed=1), 0.05
    t = torch.stack([x.sin().sum(1), (x[:, 0] * x[:, 1])], 1) + 0.1 * standard_normal(60, 2, seed=2)
    kernel = RBFKernel(0.9).double()
    gram = kernel_by_hand(x, x, 0.9, 2) + ratio * torch.eye(60, dtype=torch.float64)
    cross = kernel_by_hand(x, new, 0.9, 2)
    weights = torch.linalg.inv(gram) @ t
    amplitude = (t * weights).mean()
    variance = amplitude * (1 - (cross * (torch.linalg.inv(gram) @ cross)).sum(0))
    parts = {}
    for name, memory in (("cholesky", None), ("conjugate_gradients", 1_000)):
        fitted = BlockedRegression.fit(kernel, x, t, ratio=ratio, block=7, memory=memory)
        found = fitted.predict(new)
        parts[f"mean_{name}"] = close(found.mean, cross.mT @ weights, atol=1e-6)
        parts[f"variance_{name}"] = close(found.variance, variance, atol=1e-6)
        parts[f"target_variance_{name}"] = close(found.target_variance, variance + amplitude * ratio, atol=1e-6)
        parts[f"weights_{name}"] = close(fitted.solution.weights, weights, atol=1e-6)
        parts[f"residual_{name}"] = less_equal(fitted.solution.residual, 1e-8)
    matrix = KernelMatrix(kernel, x, None, 7, ())
    chosen = [type(choose_solver(matrix, noise=ratio, memory=memory)) for memory in (None, 1_000)]
    return all_of(**parts, solvers=close(float(chosen == [CholeskySolver, ConjugateGradients]), 1.0))


@claim("B15.1-7")
def densities_and_coverage_of_predictions_are_counted() -> Evidence:
    """NLPD = −log N(t; m, s²) and RMSE by their definitions; too narrow intervals cover too little (book sec. 15.1)."""
    mean, variance = standard_normal(2_000), 0.5 + standard_normal(2_000, seed=1).square()
    t = mean + variance.sqrt() * standard_normal(2_000, seed=2)
    exact = -Normal(mean, variance.sqrt()).log_prob(t).mean()
    right, narrow = (CalibrationCurve.from_regression(mean, each, t) for each in (variance, variance / 4))
    levels = torch.special.erf(torch.special.ndtri((1 + right.predicted) / 2) / 2 / 2**0.5)
    return all_of(
        density=close(negative_log_density(mean, variance, t), exact, rtol=1e-12),
        of_the_curve=close(right.negative_log_likelihood, exact, rtol=1e-12),
        root_mean_square=close(root_mean_squared_error(mean, t), ((t - mean) ** 2).mean() ** 0.5, rtol=1e-12),
        calibrated=close(right.observed, right.predicted, atol=0.035),
        coverage_of_half_the_deviation=close(narrow.observed, levels, atol=0.035),
        error=greater_equal(narrow.error - right.error, 0.1),
    )


@claim("B15.3-5")
def class_probabilities_and_their_reliability_are_exact() -> Evidence:
    """P(y_c is the largest) by sampling, Φ for two classes; bins by hand; Wilson's bounds solve their equation."""
    mean, variance = torch.tensor([[0.2, 1.0, -0.4], [2.0, 0.0, 0.1]]).double(), torch.tensor([0.8, 0.3]).double()
    samples = mean[:, None] + variance.sqrt()[:, None, None] * standard_normal(2, 200_000, 3)
    frequency = torch.nn.functional.one_hot(samples.argmax(2), 3).double().mean(1)
    two = class_probabilities(mean[:, :2], variance)
    probabilities = torch.tensor([[0.9, 0.1], [0.85, 0.15], [0.3, 0.7], [0.45, 0.55]], dtype=torch.float64)
    binned = reliability(probabilities, torch.tensor([0, 1, 1, 0]), bins=5)
    fraction, count = torch.tensor([0.0, 0.3, 0.9]).double(), torch.tensor([5.0, 20.0, 7.0]).double()
    low, high = wilson_interval(fraction, count)
    roots = [(fraction - p).square() - 1.96**2 * p * (1 - p) / count for p in (low, high)]
    return all_of(
        three_classes=close(class_probabilities(mean, variance), frequency, atol=0.005),
        two_classes=close(
            two[:, 0], Normal(0.0, 1.0).cdf((mean[:, 0] - mean[:, 1]) / (2 * variance).sqrt()), atol=1e-9
        ),
        confidence=close(binned.confidence, torch.tensor([0.55, 0.7, 0.875], dtype=torch.float64), atol=1e-12),
        accuracy=close(binned.accuracy, torch.tensor([0.0, 1.0, 0.5]).double()),
        fractions=close(binned.fraction, torch.tensor([0.25, 0.25, 0.5])),
        error=close(binned.error, 0.25 * 0.55 + 0.25 * 0.3 + 0.5 * 0.375, rtol=1e-9),
        wilson=close(torch.stack(roots), 0.0, atol=1e-12),
        order=greater_equal(high - low, 0.1),
    )


@claim("B15.1-6")
def noise_is_selected_by_evidence_or_by_held_out_points() -> Evidence:
    """Of three ratios the one with the largest log N(t; 0, v(K + ρI)), v at its best; or the least error of a quarter.

    Both find the ratio from which the data were drawn (book eq. 15.4).
    """
    x = torch.linspace(0, 12, 160, dtype=torch.float64)[torch.randperm(160, generator=seeded_generator())][:, None]
    gram, ratios = kernel_by_hand(x, x, 1.0, 2), [0.003, 0.1, 3.0]
    root = torch.linalg.cholesky(1.7 * (gram + 0.1 * torch.eye(160)))
    t = root @ standard_normal(160, 3, seed=5)
    scores = []
    for ratio in ratios:
        covariance = gram + ratio * torch.eye(160, dtype=torch.float64)
        amplitude = (t * torch.linalg.solve(covariance, t)).mean()
        law = MultivariateNormal(torch.zeros(160, dtype=torch.float64), amplitude * covariance)
        scores.append(float(law.log_prob(t.mT).sum() / t.numel()))
    train, weights = slice(0, 120), [torch.linalg.solve(gram[:120, :120] + r * torch.eye(120), t[:120]) for r in ratios]
    errors = [float((gram[120:, train] @ each - t[120:]).square().mean()) for each in weights]
    by_evidence, by_validation = select_by_evidence(gram, t, ratios), select_by_validation(gram, t, ratios)
    return all_of(
        evidence=close(by_evidence.score, max(scores), rtol=1e-6),
        ratio=close(by_evidence.ratio, 0.1),
        held_out_error=close(-by_validation.score, min(errors), rtol=1e-6),
        ratio_by_validation=close(by_validation.ratio, 0.1),
        others_are_worse=greater_equal(max(scores) - sorted(scores)[1], 0.05),
    )


@claim("B15.1-6")
def gpytorch_learns_the_hyperparameters_of_these_kernels() -> Evidence:
    """The adapter has the values of the kernel, its diagonal, and the gradient of its length scale."""
    kernel = RBFKernel(0.7).double()
    adapter, y = as_gpytorch(kernel), X[1:] + 0.2
    value = adapter(X, y).to_dense()
    value.sum().backward()
    step = 1e-6
    above, below = (kernel_by_hand(X, y, 0.7 * (1 + sign * step), 2).sum() for sign in (1, -1))
    assert kernel.log_length.grad is not None
    return all_of(
        values=close(value, kernel_by_hand(X, y, 0.7, 2), rtol=1e-12),
        diagonal=close(adapter(X, diag=True), 1.0),
        gradient=close(kernel.log_length.grad, (above - below) / (2 * step), rtol=1e-6),
        log_two_pi=close(negative_log_density(X[:, 0], X.new_ones(4), X[:, 0]), log(2 * pi) / 2, rtol=1e-12),
    )
