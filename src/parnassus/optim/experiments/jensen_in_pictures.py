"""Jensen's inequality: a mean of values above the value of the mean, and a bound for hidden causes (Zhao sec. 12)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.probability import (
    jensen,
    jensen_by_merging,
    latent_bound,
    normal_density,
    normal_log_density,
    variance,
)
from parnassus.probability.jensen import PointFunction
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes

covers = ("D1.4.5", "Z12.5", "Z12.6")
expected = {
    "least_gap": at_least(0.0, "the least gap of convex functions over all random laws"),
    "largest_gap_of_log": at_most(0.0, "the largest gap of the logarithm, which is concave"),
    "square_gap_less_variance": at_most(1e-12, "distance of the gap of x² from the variance"),
    "largest_rise_by_merging": at_most(1e-12, "by which a merge of two points raised the mean of x²"),
    "bound_at_0": between(2.4688, 2.4690, "E[−log P(x|Y)] at x = 0, two bells"),
    "surprise_at_0": between(2.2037, 2.2039, "−log P(x) there"),
    "gap_where_the_bells_meet": at_most(1e-12, "their distance at x = ½, where both bells are as high"),
    "largest_gap": at_least(1.0, "their largest distance between −5 and 6"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"laws": 40}, "gpu": {}}

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
    laws: int = 400  # random laws of five points to draw

    def __call__(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.seed)
        points = 0.2 + 2 * torch.rand(self.laws, 5, generator=generator, dtype=torch.float64)
        weights = torch.randn(self.laws, 5, generator=generator, dtype=torch.float64).mul(1.5).softmax(-1)
        result = self.gaps(run, points, weights) | draw_merging(run, points, weights) | draw_hidden(run)
        run.note(
            "what to see",
            "The mean of the values lies in the polygon that the points on the graph span, and a convex graph is its "
            "lower edge. With −log for f the inequality bounds the surprise of what is seen by an average over what is "
            "not; it is wasteful where the causes disagree.",
        )
        return result

    def gaps(self, run: Run, points: Tensor, weights: Tensor) -> dict[str, float]:
        figure, axes = subplots(1, 2, size=(10.4, 4.0))
        draw_polygon(axes[0, 0])
        spread = torch.stack([variance(x, p) for x, p in zip(points, weights, strict=True)])
        gaps = {
            name: torch.stack([jensen(f, x, p).gap for x, p in zip(points, weights, strict=True)])
            for name, f in FUNCTIONS.items()
        }
        for (name, gap), colour in zip(gaps.items(), PALETTE, strict=False):
            axes[0, 1].plot(spread, gap, "o", color=colour, markersize=3, alpha=0.7, label=name)
        axes[0, 1].axhline(0, color=INK, linewidth=1)
        axes[0, 1].set(xlabel="variance of X", title="E f(X) − f(E X)", ylim=(-0.6, 2.0))
        axes[0, 1].legend(loc="upper left")
        run.figure(
            "the gap",
            figure,
            "Left: four weighted points on a convex graph. Their mean (orange) lies in the polygon between them, above "
            f"the graph. Right: the gap for {self.laws} random laws of five points: never negative for the convex "
            "ones, exactly the variance for x², never positive for the concave logarithm.",
        )
        return {
            "least_gap": float(min(gaps[name].min() for name in ("x²", "exp x", "x log x"))),
            "largest_gap_of_log": float(gaps["log x"].max()),
            "square_gap_less_variance": float((gaps["x²"] - spread).abs().max()),
        }


def draw_polygon(ax: "Axes") -> None:
    x = torch.tensor([-1.6, -0.4, 0.9, 2.0], dtype=torch.float64)
    weights = torch.tensor([0.3, 0.15, 0.2, 0.35], dtype=torch.float64)
    line = torch.linspace(-2, 2.3, 200, dtype=torch.float64)
    sides = jensen(torch.square, x, weights)
    mean = float(x @ weights)
    ax.fill(x, x.square(), color=PALETTE[0], alpha=0.15)
    ax.plot(line, line.square(), color=PALETTE[0])
    ax.scatter(x, x.square(), s=260 * weights, color=INK, zorder=3)
    ax.plot([mean, mean], [float(sides.of_mean), float(sides.mean_of)], color=PALETTE[1], marker="o", linewidth=2)
    ax.annotate("E f(X)", (mean, float(sides.mean_of)), xytext=(8, 2), textcoords="offset points")
    ax.annotate("f(E X)", (mean, float(sides.of_mean)), xytext=(8, -12), textcoords="offset points")
    ax.set(xlabel="x", title="f(x) = x²")


def draw_merging(run: Run, points: Tensor, weights: Tensor) -> dict[str, float]:
    """Σ p f(x) while points are merged two by two, which is the induction of the proof."""
    figure, axes = subplots(1, 3, size=(10.8, 3.2))
    shown: dict[str, PointFunction] = {
        "x², convex": torch.square,
        "3x − 1, affine": _affine,
        "log x, concave": torch.log,
    }
    rises = []
    for ax, (name, f), colour in zip(axes[0], shown.items(), PALETTE, strict=False):
        for x, p in zip(points[:12], weights[:12], strict=True):
            sums = jensen_by_merging(f, x, p)
            ax.plot(sums - sums[0], color=colour, alpha=0.6, linewidth=1.2)
            if f is torch.square:
                rises.append(float(sums.diff().max()))
        ax.set(title=name, xlabel="points merged", xticks=range(5), ylim=(-0.7, 0.7))
    axes[0, 0].set_ylabel("change of Σ p f(x)")
    run.figure(
        "the proof step by step",
        figure,
        "Replace two points by their mean, again and again: each merge is the definition of convexity, for two points. "
        "From the mean of the values (step 0) one arrives at the value of the mean, downwards for a convex function.",
    )
    return {"largest_rise_by_merging": max(rises)}


def _affine(x: Tensor) -> Tensor:
    return 3 * x - 1


def draw_hidden(run: Run) -> dict[str, float]:
    """Average surprise over two hidden causes, and the surprise itself, along x."""
    x = torch.linspace(-5, 6, 1_101, dtype=torch.float64)
    sides = latent_bound(normal_log_density(x[:, None], mean=MEANS, variance=1.0), PRIOR)
    bells = PRIOR * normal_density(x[:, None], mean=MEANS, variance=1.0)
    figure, axes = subplots(1, 2, size=(10.4, 3.8))
    for bell, share, colour in zip(bells.T, PRIOR, PALETTE[2:], strict=False):
        axes[0, 0].fill_between(x, bell, color=colour, alpha=0.35, linewidth=0, label=f"cause of chance {share:g}")
    axes[0, 0].plot(x, bells.sum(1), color=INK, label="P(x)")
    axes[0, 0].set(xlabel="x", title="two causes, one of which was at work")
    axes[0, 0].legend(loc="upper left")
    axes[0, 1].plot(x, sides.bound, color=PALETTE[1], label="E[−log P(x|Y)]")
    axes[0, 1].plot(x, sides.surprise, color=PALETTE[0], label="−log P(x)")
    places = latent_bound(
        normal_log_density(torch.tensor([[0.0], [0.5], [3.0]]).double(), mean=MEANS, variance=1.0), PRIOR
    )
    for at, high, low in zip((0.0, 0.5, 3.0), places.bound, places.surprise, strict=True):
        axes[0, 1].plot([at, at], [float(low), float(high)], color=INK, marker="o", markersize=4, linewidth=1.2)
    axes[0, 1].axvline(0.5, color=FAINT, linestyle=":", linewidth=1.2)
    axes[0, 1].set(xlabel="x", title="the bound and what it bounds", ylim=(0, 14))
    axes[0, 1].legend(loc="upper center")
    run.figure(
        "a hidden variable",
        figure,
        "Which of two bells x came from is not seen. Averaging the surprise over both costs more than the surprise of "
        "x itself, except at x = ½ (dotted), where both explain it equally well. Guessing the cause from x, rather "
        "than from the prior, closes the gap: that is variational inference.",
    )
    return {
        "bound_at_0": float(places.bound[0]),
        "surprise_at_0": float(places.surprise[0]),
        "gap_where_the_bells_meet": float((places.bound[1] - places.surprise[1]).abs()),
        "largest_gap": float((sides.bound - sides.surprise).max()),
    }
