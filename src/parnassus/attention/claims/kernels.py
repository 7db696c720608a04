"""Claims about kernels and kernel regression (Zhao sec. 11, book sec. 10.1.3)."""

from functools import partial

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate
from parnassus.attention.core.lookup import hard_lookup, soft_lookup
from parnassus.attention.core.scores import BilinearScore, MahalanobisScore, gaussian_score
from parnassus.attention.regression.kernel_regression import NadarayaWatson, mean_shift
from parnassus.attention.regression.kernels import (
    RadialKernel,
    boxcar_kernel,
    constant_kernel,
    epanechnikov_kernel,
    gaussian_kernel,
    similarity,
    triangular_kernel,
)
from parnassus.attention.regression.learned_kernel import LearnedKernel
from parnassus.optim import Adam
from parnassus.probability import standard_normal

KERNELS: dict[str, RadialKernel] = {
    "gaussian": gaussian_kernel,
    "boxcar": boxcar_kernel,
    "triangular": triangular_kernel,
    "epanechnikov": epanechnikov_kernel,
}


def true_function(x: Tensor) -> Tensor:
    """2 sin x + x, the regression function; observations have noise of standard deviation 1."""
    return 2 * x.sin() + x


def noisy_curve(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Uniform inputs on [0, 5] and noisy targets."""
    generator = torch.Generator().manual_seed(seed)
    x = 5 * torch.rand(count, 1, generator=generator, dtype=torch.float64)
    return x, true_function(x) + torch.randn(count, 1, generator=generator, dtype=torch.float64)


@claim("Z11.4")
def kernels_depend_on_distances_only() -> Evidence:
    """Kernels are invariant to joint shifts and rotations; all but the Gaussian have compact support (Zhao sec. 11)."""
    query, key = standard_normal(9, 3), standard_normal(12, 3, seed=1)
    rotation = torch.linalg.qr(standard_normal(3, 3, seed=2)).Q
    shift, far = standard_normal(3, seed=3), torch.tensor([1.001, 1.5, 3.0], dtype=torch.float64)
    parts = {}
    for name, kernel in KERNELS.items():
        alpha = partial(similarity, kernel=kernel, bandwidth=2.0)
        transformed = alpha(query @ rotation + shift, key @ rotation + shift)
        parts[f"{name}_transformed"] = close(transformed, alpha(query, key), atol=1e-12)
        parts[f"{name}_far"] = greater_equal(kernel(far), 0.01) if name == "gaussian" else close(kernel(far), 0.0)
    anisotropic = partial(similarity, bandwidth=torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64))
    rotated = anisotropic(query @ rotation, key @ rotation)
    return all_of(
        **parts,
        constant=close(similarity(query, 100 * key, kernel=constant_kernel), 1.0),
        bandwidths_by_coordinate_are_not_rotation_invariant=greater_equal(
            (rotated - anisotropic(query, key)).abs().max(), 0.05
        ),
    )


@erratum("Z11.4", printed="Epanechnikov: max(0, 1 − u)", right="¾ max(0, 1 − u²); the printed one is triangular")
def the_printed_epanechnikov_kernel_is_triangular() -> Correction:
    """Epanechnikov's kernel minimises ∫K² · √∫u²K, at 3/(5√5); the printed one does not (Zhao sec. 11)."""
    minimum = 3 / (5 * 5**0.5)
    others = torch.stack([efficiency_constant(kernel) for kernel in (triangular_kernel, boxcar_kernel)])
    return Correction(
        printed=close(efficiency_constant(triangular_kernel), minimum, rtol=1e-3),
        corrected=all_of(
            minimum=close(efficiency_constant(epanechnikov_kernel), minimum, rtol=1e-5),
            triangular_and_boxcar_are_larger=greater_equal(others, 1.01 * minimum),
        ),
    )


def efficiency_constant(kernel: RadialKernel) -> Tensor:
    """∫K² · √∫u²K of the normalised kernel, which determines its error at the optimal bandwidth."""
    u = torch.linspace(-1, 1, 200_001, dtype=torch.float64)
    k = kernel(u.abs())
    k = k / torch.trapezoid(k, u)
    return torch.trapezoid(k.square(), u) * torch.trapezoid(u.square() * k, u).sqrt()


@claim("Z11.5", "B10.1.3-4")
def predictions_lie_between_nearest_neighbour_and_mean() -> Evidence:
    """f(q) is a mean of targets: the nearest one as bandwidth → 0, all with equal weights as it → ∞ (Zhao sec. 11)."""
    x, y = noisy_curve(40, 0)
    query = torch.linspace(-1, 6, 57, dtype=torch.float64)[:, None]
    nearest = hard_lookup(query, x, y, score=gaussian_score).output
    parts = {}
    for name, kernel in KERNELS.items():
        fitted = NadarayaWatson.fit(x, y, kernel=kernel)
        parts[f"{name}_sums"] = close(fitted.weights(query).sum(1), 1.0, atol=1e-13)
        parts[f"{name}_upper_bound"] = less_equal(fitted.predict(query), y.max())
        parts[f"{name}_lower_bound"] = greater_equal(fitted.predict(query), y.min())
        parts[f"{name}_narrow"] = close(fitted.with_bandwidth(1e-4).predict(query), nearest, atol=1e-9)
        parts[f"{name}_wide"] = close(fitted.with_bandwidth(1e7).predict(query), y.mean(), atol=1e-5)
    mean = NadarayaWatson.fit(x, y, kernel=constant_kernel).predict(query)
    return all_of(**parts, constant=close(mean, y.mean().expand(57, 1), atol=1e-13))


@claim("Z11.5")
def one_hot_targets_give_class_probabilities() -> Evidence:
    """With one-hot labels as values the prediction is the distribution of classes near the query (Zhao sec. 11)."""
    x = standard_normal(90, 2)
    labels = torch.arange(90) % 3
    x = x + 4 * torch.eye(3, 2, dtype=torch.float64)[labels]
    fitted = NadarayaWatson.fit_classes(x, labels, 3, kernel=boxcar_kernel, bandwidth=1.0)
    probabilities = fitted.predict(x)
    near = (torch.cdist(x, x) <= 1.0).double()
    fractions = torch.stack([(near * (labels == k)).sum(1) for k in range(3)], 1) / near.sum(1, keepdim=True)
    return all_of(
        sum_one=close(probabilities.sum(1), 1.0, atol=1e-13),
        class_fractions=close(probabilities, fractions, atol=1e-13),
        accuracy=greater_equal((probabilities.argmax(1) == labels).double().mean(), 0.85),
    )


@claim("Z11.5")
def shrinking_the_bandwidth_makes_kernel_regression_consistent() -> Evidence:
    """With h = n^{−1/5} the squared error decreases as n^{−4/5} (Mack and Silverman 1982); with h fixed it does not."""
    counts = (100, 400, 1_600, 6_400)
    shrinking = [mean_error(n, n**-0.2, seeds=60 if n < 1_000 else 20) for n in counts]
    fixed = [mean_error(n, 1.0, seeds=5) for n in (1_600, 6_400)]
    return all_of(
        rate=rate(torch.tensor(counts), torch.tensor(shrinking), -0.8, atol=0.1),
        bias_remains_at_fixed_bandwidth=greater_equal(fixed[1] / fixed[0], 0.9),
        error_with_40_points=close(mean_error(40, 40**-0.2, seeds=30), 0.11, rtol=0.3),
    )


def mean_error(count: int, bandwidth: float, *, seeds: int) -> float:
    """Squared error on [1, 4], averaged over seeds."""
    query = torch.linspace(1, 4, 31, dtype=torch.float64)[:, None]
    errors = [
        (NadarayaWatson.fit(*noisy_curve(count, seed), bandwidth=bandwidth).predict(query) - true_function(query))
        .square()
        .mean()
        for seed in range(seeds)
    ]
    return float(torch.stack(errors).mean())


@claim("B10.1.3-4", "B10.1.3-2", "Z11.5")
def attention_with_a_gaussian_score_is_kernel_regression() -> Evidence:
    """softmax(−‖q − k‖²/2σ²) V is the Nadaraya-Watson estimate with a Gaussian kernel (book eq. 10.6)."""
    query, key, value = standard_normal(7, 3), standard_normal(20, 3, seed=1), standard_normal(20, 2, seed=2)
    attended = soft_lookup(query, key, value, score=partial(gaussian_score, sigma=0.6))
    regression = NadarayaWatson.fit(key, value, bandwidth=0.6)
    products = ((query @ key.mT - key.square().sum(-1) / 2) / 0.36).softmax(-1)
    return all_of(
        outputs=close(attended.output, regression.predict(query), atol=1e-13),
        weights=close(attended.weights, regression.weights(query), atol=1e-13),
        without_the_query_norm=close(products, attended.weights, atol=1e-13),
    )


@erratum(
    "B10.1.3-4", printed="kernel regression when values = keys", right="for any values; values = keys is mean shift"
)
def attention_with_values_equal_to_keys_is_mean_shift() -> Correction:
    """Targets as values give E[y | x]; keys as values give mean shift towards dense regions (book eq. 10.6)."""
    x, y = noisy_curve(2_000, 0)
    query = torch.linspace(1, 4, 31, dtype=torch.float64)[:, None]
    keys_as_values = NadarayaWatson.fit(x, x, bandwidth=0.2).predict(query)
    targets = NadarayaWatson.fit(x, y, bandwidth=0.2).predict(query)
    points = torch.cat([standard_normal(100, 2), standard_normal(100, 2, seed=1) + 5])
    path = mean_shift(standard_normal(6, 2, seed=2) + 2.5, points, steps=150, bandwidth=0.9)
    density = torch.stack([similarity(q, points, bandwidth=0.9).mean(1) for q in path])
    return Correction(
        printed=close(keys_as_values, true_function(query), atol=0.3),
        corrected=all_of(
            targets_as_values=close(targets, true_function(query), atol=0.3),
            mean_shift_increases_the_density=greater_equal(density.diff(dim=0), -1e-14),
            mean_shift_converges=less_equal((path[-1] - path[-2]).norm(dim=1), 1e-6),
        ),
    )


@claim("B10.1.3-5")
def learned_bandwidths_suppress_noise_features() -> Evidence:
    """Learned bandwidths beat a shared one if an input is noise; M can represent the Gaussian (book sec. 10.1.3)."""
    x, y = noisy_curve(120, 0)
    x = torch.cat([x - 2.5, 2.5 * standard_normal(120, 1, seed=9)], 1)
    fixed = NadarayaWatson.fit(x, y)
    bandwidth = fixed.best_bandwidth([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.4, 2.0])
    model = LearnedKernel(MahalanobisScore(2, sigma=bandwidth)).double()
    optimizer = Adam(model.parameters(), lr=0.1)
    for _ in range(80):
        loss = model.loss(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    features = torch.cat([x, x.square().sum(1, keepdim=True) / 2, torch.ones_like(y)], 1)
    score = BilinearScore(4, 4).double()
    score.m.data = torch.diag(torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64))
    score.m.data[3, 2] = -1.0
    scales = torch.linalg.norm(next(model.parameters()).detach(), dim=0)
    return all_of(
        learned_beats_fixed=less_equal(model.loss(x, y), 0.9 * fixed.with_bandwidth(bandwidth).leave_one_out_error()),
        scale_of_the_noise_feature=less_equal(scales[1] / scales[0], 0.3),
        bilinear_score_contains_the_gaussian=close(
            LearnedKernel(score).weights(features, features), fixed.weights(x), atol=1e-12
        ),
    )
