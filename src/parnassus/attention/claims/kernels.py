"""Claims about kernels and kernel regression (Zhao sec. 11, book sec. 10.1.3)."""

from functools import partial

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, rate
from parnassus.attention.kernel_regression import NadarayaWatson, mean_shift
from parnassus.attention.kernels import (
    Kernel,
    boxcar,
    constant,
    epanechnikov,
    gaussian,
    similarity,
    triangular,
)
from parnassus.attention.learned_kernel import LearnedKernel
from parnassus.attention.lookup import hard_lookup, soft_lookup
from parnassus.attention.scores import BilinearScore, MetricScore, gaussian_score
from parnassus.optim import Adam

KERNELS: dict[str, Kernel] = {
    "gaussian": gaussian,
    "boxcar": boxcar,
    "triangular": triangular,
    "epanechnikov": epanechnikov,
}


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def truth(x: Tensor) -> Tensor:
    """2 sin x + x, the curve that is seen through noise of deviation 1."""
    return 2 * x.sin() + x


def noisy_curve(count: int, seed: int) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(seed)
    x = 5 * torch.rand(count, 1, generator=source, dtype=torch.float64)
    return x, truth(x) + torch.randn(count, 1, generator=source, dtype=torch.float64)


@claim("Z11.4")
def kernels_see_distances_only() -> Evidence:
    """A kernel does not change when both points are moved or turned alike; all but the Gaussian end (Zhao sec. 11)."""
    query, key = normals(9, 3), normals(12, 3, seed=1)
    rotation = torch.linalg.qr(normals(3, 3, seed=2)).Q
    shift, far = normals(3, seed=3), torch.tensor([1.001, 1.5, 3.0], dtype=torch.float64)
    parts = {}
    for name, kernel in KERNELS.items():
        alpha = partial(similarity, kernel=kernel, width=2.0)
        moved = alpha(query @ rotation + shift, key @ rotation + shift)
        parts[f"{name}_moved"] = close(moved, alpha(query, key), atol=1e-12)
        parts[f"{name}_far"] = at_least(kernel(far), 0.01) if name == "gaussian" else close(kernel(far), 0.0)
    uneven = partial(similarity, width=torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64))
    turned = uneven(query @ rotation, key @ rotation)
    return all_of(**parts, widths_by_coordinate_see_turns=at_least((turned - uneven(query, key)).abs().max(), 0.05))


@erratum("Z11.4", printed="Epanechnikov: max(0, 1 − u)", right="¾ max(0, 1 − u²); the printed one is triangular")
def the_kernel_called_epanechnikov_is_a_triangle() -> Correction:
    """Epanechnikov's kernel has the least ∫K² · √∫u²K of all, 3/(5√5); the printed one has more (Zhao sec. 11)."""
    least = 3 / (5 * 5**0.5)
    others = torch.stack([waste(kernel) for kernel in (triangular, boxcar)])
    return Correction(
        printed=close(waste(triangular), least, rtol=1e-3),
        corrected=all_of(
            least=close(waste(epanechnikov), least, rtol=1e-5),
            triangle_and_box_have_more=at_least(others, 1.01 * least),
        ),
    )


def waste(kernel: Kernel) -> Tensor:
    """∫K² · √∫u²K on the line for the kernel of integral 1: what its error at the best width is in proportion to."""
    u = torch.linspace(-1, 1, 200_001, dtype=torch.float64)
    k = kernel(u.abs())
    k = k / torch.trapezoid(k, u)
    return torch.trapezoid(k.square(), u) * torch.trapezoid(u.square() * k, u).sqrt()


@claim("Z11.5", "B10.1.3-4")
def predictions_lie_between_nearest_neighbour_and_mean() -> Evidence:
    """f(q) is a mean of targets: the nearest one as the width goes to 0, all of them as it grows (Zhao sec. 11)."""
    x, y = noisy_curve(40, 0)
    query = torch.linspace(-1, 6, 57, dtype=torch.float64)[:, None]
    nearest = hard_lookup(query, x, y, score=gaussian_score).output
    parts = {}
    for name, kernel in KERNELS.items():
        fitted = NadarayaWatson.fit(x, y, kernel=kernel)
        parts[f"{name}_sums"] = close(fitted.weights(query).sum(1), 1.0, atol=1e-13)
        parts[f"{name}_at_most_the_largest"] = at_most(fitted.predict(query), y.max())
        parts[f"{name}_at_least_the_least"] = at_least(fitted.predict(query), y.min())
        parts[f"{name}_narrow"] = close(fitted.with_width(1e-4).predict(query), nearest, atol=1e-9)
        parts[f"{name}_wide"] = close(fitted.with_width(1e7).predict(query), y.mean(), atol=1e-5)
    mean = NadarayaWatson.fit(x, y, kernel=constant).predict(query)
    return all_of(**parts, constant=close(mean, y.mean().expand(57, 1), atol=1e-13))


@claim("Z11.5")
def one_hot_targets_give_class_probabilities() -> Evidence:
    """With one-hot labels as values the prediction is a distribution over classes, the share of each (Zhao sec. 11)."""
    x = normals(90, 2)
    labels = torch.arange(90) % 3
    x = x + 4 * torch.eye(3, 2, dtype=torch.float64)[labels]
    fitted = NadarayaWatson.fit_classes(x, labels, 3, kernel=boxcar, width=1.0)
    probabilities = fitted.predict(x)
    near = (torch.cdist(x, x) <= 1.0).double()
    shares = torch.stack([(near * (labels == k)).sum(1) for k in range(3)], 1) / near.sum(1, keepdim=True)
    return all_of(
        sum_one=close(probabilities.sum(1), 1.0, atol=1e-13),
        shares=close(probabilities, shares, atol=1e-13),
        mostly_right=at_least((probabilities.argmax(1) == labels).double().mean(), 0.85),
    )


@claim("Z11.5")
def narrowing_the_kernel_makes_regression_consistent() -> Evidence:
    """With h = n^{−1/5} the squared error falls like n^{−4/5} (Mack and Silverman 1982); with h fixed it stays."""
    counts = (100, 400, 1_600, 6_400)
    shrinking = [mean_error(n, n**-0.2, seeds=60 if n < 1_000 else 20) for n in counts]
    fixed = [mean_error(n, 1.0, seeds=5) for n in (1_600, 6_400)]
    return all_of(
        rate=rate(torch.tensor(counts), torch.tensor(shrinking), -0.8, atol=0.1),
        fixed_width_is_left_with_its_bias=at_least(fixed[1] / fixed[0], 0.9),
        near_the_catalogue_at_40=close(mean_error(40, 40**-0.2, seeds=30), 0.11, rtol=0.3),
    )


def mean_error(count: int, width: float, *, seeds: int) -> float:
    """Squared error over the inner part [1, 4] of the curve, a mean over seeds."""
    query = torch.linspace(1, 4, 31, dtype=torch.float64)[:, None]
    errors = [
        (NadarayaWatson.fit(*noisy_curve(count, seed), width=width).predict(query) - truth(query)).square().mean()
        for seed in range(seeds)
    ]
    return float(torch.stack(errors).mean())


@claim("B10.1.3-4", "B10.1.3-2", "Z11.5")
def attention_with_a_gaussian_score_is_kernel_regression() -> Evidence:
    """softmax(−‖q − k‖²/2σ²) V is the Nadaraya-Watson estimate with a Gaussian kernel (book eq. 10.6)."""
    query, key, value = normals(7, 3), normals(20, 3, seed=1), normals(20, 2, seed=2)
    attended = soft_lookup(query, key, value, score=partial(gaussian_score, width=0.6))
    regression = NadarayaWatson.fit(key, value, width=0.6)
    products = ((query @ key.mT - key.square().sum(-1) / 2) / 0.36).softmax(-1)
    return all_of(
        outputs=close(attended.output, regression.predict(query), atol=1e-13),
        weights=close(attended.weights, regression.weights(query), atol=1e-13),
        without_the_query_s_length=close(products, attended.weights, atol=1e-13),
    )


@erratum(
    "B10.1.3-4", printed="kernel regression when values = keys", right="for any values; values = keys is mean shift"
)
def values_equal_to_keys_are_mean_shift() -> Correction:
    """With targets as values it finds E[y | x]; with the keys it climbs to where keys are dense (book eq. 10.6)."""
    x, y = noisy_curve(2_000, 0)
    query = torch.linspace(1, 4, 31, dtype=torch.float64)[:, None]
    keys_as_values = NadarayaWatson.fit(x, x, width=0.2).predict(query)
    targets = NadarayaWatson.fit(x, y, width=0.2).predict(query)
    points = torch.cat([normals(100, 2), normals(100, 2, seed=1) + 5])
    path = mean_shift(normals(6, 2, seed=2) + 2.5, points, steps=150, width=0.9)
    density = torch.stack([similarity(q, points, width=0.9).mean(1) for q in path])
    return Correction(
        printed=close(keys_as_values, truth(query), atol=0.3),
        corrected=all_of(
            targets_as_values=close(targets, truth(query), atol=0.3),
            mean_shift_climbs=at_least(density.diff(dim=0), -1e-14),
            and_comes_to_rest=at_most((path[-1] - path[-2]).norm(dim=1), 1e-6),
        ),
    )


@claim("B10.1.3-5")
def a_learned_kernel_forgets_what_does_not_matter() -> Evidence:
    """Where an input is noise, learned widths beat a common one; M can hold the Gaussian kernel (book sec. 10.1.3)."""
    x, y = noisy_curve(120, 0)
    x = torch.cat([x - 2.5, 2.5 * normals(120, 1, seed=9)], 1)
    fixed = NadarayaWatson.fit(x, y)
    width = fixed.best_width([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.4, 2.0])
    model = LearnedKernel(MetricScore(2, width=width)).double()
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
    stretch = torch.linalg.norm(next(model.parameters()).detach(), dim=0)
    return all_of(
        learned_beats_fixed=at_most(model.loss(x, y), 0.9 * fixed.with_width(width).left_out_error()),
        noise_counts_little=at_most(stretch[1] / stretch[0], 0.3),
        products_contain_the_gaussian=close(
            LearnedKernel(score).weights(features, features), fixed.weights(x), atol=1e-12
        ),
    )
