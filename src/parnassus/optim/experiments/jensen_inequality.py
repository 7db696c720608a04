"""Jensen's inequality: gap, proof by induction, and the bound on −log p(x) with a latent variable (Zhao sec. 12)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.probability import (
    jensen_inequality,
    jensen_merge_path,
    normal_density,
    normal_log_density,
    prior_evidence_bound,
    variance,
)
from parnassus.probability.expectations.jensen_inequality import PointFunction
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Positive, Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes

covers = ("D1.4.5", "Z12.5", "Z12.6")
expected = {
    "min_gap_convex": at_least(0.0, "minimum gap of convex functions over all random distributions"),
    "max_gap_log": at_most(0.0, "maximum gap of the logarithm, which is concave"),
    "square_gap_error": at_most(1e-12, "maximum difference between the gap of x² and the variance"),
    "max_merge_increase": at_most(1e-12, "maximum increase of the mean of x² when two points are merged"),
    "bound_at_0": between(2.4688, 2.4690, "E[−log P(x|Y)] at x = 0, mixture of two Gaussians"),
    "nll_at_0": between(2.2037, 2.2039, "−log P(x) at x = 0"),
    "gap_at_equal_densities": at_most(1e-12, "gap of the bound at x = ½, where both densities are equal"),
    "max_bound_gap": at_least(1.0, "maximum gap of the bound between −5 and 6"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_distributions": 40}, "gpu": {}}

FUNCTIONS: dict[str, PointFunction] = {
    "x²": torch.square,
    "exp x": torch.exp,
    "x log x": lambda x: torch.xlogy(x, x),
    "log x": torch.log,
}
PRIOR = torch.tensor([0.3, 0.7], dtype=torch.float64)
MEANS = torch.tensor([-1.0, 2.0], dtype=torch.float64)


@dataclass(frozen=True)
class Experiment:
    num_distributions: Positive[int] = 400  # random distributions on five points

    def __call__(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.seed)
        points = 0.2 + 2 * torch.rand(self.num_distributions, 5, generator=generator, dtype=torch.float64)
        weights = torch.randn(self.num_distributions, 5, generator=generator, dtype=torch.float64).mul(1.5).softmax(-1)
        result = self.measure_gaps(run, points, weights) | plot_merging(run, points, weights) | plot_bound(run)
        run.note(
            "results",
            "The mean of the values lies in the polygon spanned by the points on the graph, above a convex graph. For "
            "f = −log the inequality bounds the negative log-likelihood of an observation by an average over the "
            "latent variable; the bound is loose where the conditional densities differ.",
        )
        return result

    def measure_gaps(self, run: Run, points: Tensor, weights: Tensor) -> dict[str, float]:
        figure, axes = subplots(1, 2, size=(10.4, 4.0))
        plot_polygon(axes[0, 0])
        variances = torch.stack([variance(x, p) for x, p in zip(points, weights, strict=True)])
        gaps = {
            name: torch.stack([jensen_inequality(f, x, p).gap for x, p in zip(points, weights, strict=True)])
            for name, f in FUNCTIONS.items()
        }
        for (name, gap), colour in zip(gaps.items(), PALETTE, strict=False):
            axes[0, 1].plot(variances, gap, "o", color=colour, markersize=3, alpha=0.7, label=name)
        axes[0, 1].axhline(0, color=INK, linewidth=1)
        axes[0, 1].set(xlabel="variance of X", title="E f(X) − f(E X)", ylim=(-0.6, 2.0))
        axes[0, 1].legend(loc="upper left")
        run.figure(
            "Jensen gap",
            figure,
            "Left: four weighted points on a convex graph. Their mean (orange) lies in the polygon between them, above "
            f"the graph. Right: the gap for {self.num_distributions} random distributions on five points: non-negative "
            "for convex functions, equal to the variance for x², nonpositive for the concave logarithm.",
        )
        return {
            "min_gap_convex": float(min(gaps[name].min() for name in ("x²", "exp x", "x log x"))),
            "max_gap_log": float(gaps["log x"].max()),
            "square_gap_error": float((gaps["x²"] - variances).abs().max()),
        }


def plot_polygon(ax: "Axes") -> None:
    x = torch.tensor([-1.6, -0.4, 0.9, 2.0], dtype=torch.float64)
    weights = torch.tensor([0.3, 0.15, 0.2, 0.35], dtype=torch.float64)
    line = torch.linspace(-2, 2.3, 200, dtype=torch.float64)
    sides = jensen_inequality(torch.square, x, weights)
    mean = float(x @ weights)
    ax.fill(x, x.square(), color=PALETTE[0], alpha=0.15)
    ax.plot(line, line.square(), color=PALETTE[0])
    ax.scatter(x, x.square(), s=260 * weights, color=INK, zorder=3)
    ax.plot(
        [mean, mean],
        [float(sides.function_of_mean), float(sides.mean_of_function)],
        color=PALETTE[1],
        marker="o",
        linewidth=2,
    )
    ax.annotate("E f(X)", (mean, float(sides.mean_of_function)), xytext=(8, 2), textcoords="offset points")
    ax.annotate("f(E X)", (mean, float(sides.function_of_mean)), xytext=(8, -12), textcoords="offset points")
    ax.set(xlabel="x", title="f(x) = x²")


def plot_merging(run: Run, points: Tensor, weights: Tensor) -> dict[str, float]:
    """Plot Σ p f(x) while points are merged in pairs, as in the induction of the proof."""
    figure, axes = subplots(1, 3, size=(10.8, 3.2))
    functions: dict[str, PointFunction] = {
        "x², convex": torch.square,
        "3x − 1, affine": lambda x: 3 * x - 1,
        "log x, concave": torch.log,
    }
    increases = []
    for ax, (name, f), colour in zip(axes[0], functions.items(), PALETTE, strict=False):
        for x, p in zip(points[:12], weights[:12], strict=True):
            sums = jensen_merge_path(f, x, p)
            ax.plot(sums - sums[0], color=colour, alpha=0.6, linewidth=1.2)
            if f is torch.square:
                increases.append(float(sums.diff().max()))
        ax.set(title=name, xlabel="points merged", xticks=range(5), ylim=(-0.7, 0.7))
    axes[0, 0].set_ylabel("change of Σ p f(x)")
    run.figure(
        "proof by induction",
        figure,
        "Two points at a time are replaced by their mean; each merge applies the definition of convexity. The sum goes "
        "from the mean of the values (step 0) to the value of the mean and never increases for a convex function.",
    )
    return {"max_merge_increase": max(increases)}


def plot_bound(run: Run) -> dict[str, float]:
    """Plot the bound E[−log P(x|Y)] and −log P(x) of a mixture of two Gaussians."""
    x = torch.linspace(-5, 6, 1_101, dtype=torch.float64)
    sides = prior_evidence_bound(normal_log_density(x[:, None], mean=MEANS, variance=1.0), PRIOR)
    components = PRIOR * normal_density(x[:, None], mean=MEANS, variance=1.0)
    figure, axes = subplots(1, 2, size=(10.4, 3.8))
    for component, probability, colour in zip(components.T, PRIOR, PALETTE[2:], strict=False):
        label = f"component of probability {probability:g}"
        axes[0, 0].fill_between(x, component, color=colour, alpha=0.35, linewidth=0, label=label)
    axes[0, 0].plot(x, components.sum(1), color=INK, label="P(x)")
    axes[0, 0].set(xlabel="x", title="mixture of two Gaussians")
    axes[0, 0].legend(loc="upper left")
    axes[0, 1].plot(x, sides.bound, color=PALETTE[1], label="E[−log P(x|Y)]")
    axes[0, 1].plot(x, sides.nll, color=PALETTE[0], label="−log P(x)")
    examples = prior_evidence_bound(
        normal_log_density(torch.tensor([[0.0], [0.5], [3.0]]).double(), mean=MEANS, variance=1.0), PRIOR
    )
    for position, high, low in zip((0.0, 0.5, 3.0), examples.bound, examples.nll, strict=True):
        axes[0, 1].plot([position] * 2, [float(low), float(high)], color=INK, marker="o", markersize=4, linewidth=1.2)
    axes[0, 1].axvline(0.5, color=FAINT, linestyle=":", linewidth=1.2)
    axes[0, 1].set(xlabel="x", title="bound and negative log-likelihood", ylim=(0, 14))
    axes[0, 1].legend(loc="upper center")
    run.figure(
        "latent variable",
        figure,
        "The component Y that generated x is latent. The average of −log P(x|Y) over the prior exceeds −log P(x), "
        "except at x = ½ (dotted), where both densities are equal. Replacing the prior by a distribution of Y given "
        "x, as in variational inference, closes the gap.",
    )
    return {
        "bound_at_0": float(examples.bound[0]),
        "nll_at_0": float(examples.nll[0]),
        "gap_at_equal_densities": float((examples.bound[1] - examples.nll[1]).abs()),
        "max_bound_gap": float((sides.bound - sides.nll).max()),
    }
