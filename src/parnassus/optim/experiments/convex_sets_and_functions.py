"""Convex sets and functions: randomised tests by segments, chords and Hessians find counterexamples (Zhao sec. 12)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.func import vmap

from parnassus.optim import (
    find_nonconvex_segment,
    find_violating_chord,
    intersection,
    min_hessian_eigenvalue,
    sublevel_set,
    union,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.report.style import remove_frame
from parnassus.train import Positive, Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes

covers = ("Z12.2", "Z12.3", "Z12.4", "Z12.8", "Z12.9")
expected = {
    "convex_sets_refuted": at_most(0.0, "number of convex sets for which the test found a segment that leaves the set"),
    "other_sets_refuted": between(
        3.0, 3.0, "number of segments found for the ring, two discs and ℓ½ ball, one per set"
    ),
    "convex_functions_refuted": at_most(
        0.0, "number of convex functions for which the test found a chord below the graph"
    ),
    "other_functions_refuted": between(
        2.0, 2.0, "number of chords below the graph found for cos πx and √|x|, one per function"
    ),
    "test_disagreements": at_most(0.0, "number of functions for which chords and second derivatives disagree"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_trials": 2_000}, "gpu": {}}

TensorFunction = Callable[[Tensor], Tensor]
FUNCTIONS: dict[str, TensorFunction] = {
    "½x²": lambda x: x.square().sum() / 2,
    "cos πx": lambda x: (pi * x).cos().sum(),
    "exp(x/2)": lambda x: (x / 2).exp().sum(),
    "√|x|": lambda x: x.abs().sqrt().sum(),
}


@dataclass(frozen=True)
class Experiment:
    num_trials: Positive[int] = 20_000  # random segments and chords to test

    def __call__(self, run: Run) -> dict[str, float]:
        result = self.test_sets(run) | self.test_functions(run)
        run.note(
            "results",
            "A segment or chord found by the test proves that the set or function is not convex. If it finds none "
            f"among {self.num_trials:,}, this is evidence of convexity, not a proof.",
        )
        return result

    def test_sets(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.seed)
        points = 3 * torch.rand(self.num_trials, 2, generator=generator, dtype=torch.float64) - 1.5
        sets = {
            "disc ∩ half-plane": intersection(lambda x: x @ torch.tensor([1.0, 0.6]).double() <= 0.5, disc()),
            "disc ∩ disc": intersection(disc(-0.45), disc(0.45)),
            "ring": lambda x: disc()(x) & ~disc(radius=0.55)(x),
            "disc ∪ disc": union(disc(-0.85, 0.6), disc(0.85, 0.6)),
            "ℓ½ ball": lambda x: x.abs().sqrt().sum(-1) <= 1,
        }
        figure, axes = subplots(1, 5, size=(12.5, 2.9))
        refuted = {}
        for ax, (name, contains), colour in zip(axes[0], sets.items(), PALETTE, strict=False):
            plot_set(ax, contains, colour)
            segment = find_nonconvex_segment(contains, points, generator=generator, num_trials=self.num_trials)
            refuted[name] = float(segment is not None)
            if segment is not None:
                ax.plot(*torch.stack([segment.a, segment.b]).T, color=INK, marker="o", markersize=4, linewidth=1.4)
                ax.plot(*segment.point, "x", color=INK, markersize=7, markeredgewidth=2)
            ax.set_title(name)
        run.figure(
            "convex and non-convex sets",
            figure,
            "Segments between two points of a convex set stay inside; intersections of convex sets are convex. For the "
            "other three sets the test found a segment with a point outside (cross).",
        )
        return {
            "convex_sets_refuted": refuted["disc ∩ half-plane"] + refuted["disc ∩ disc"],
            "other_sets_refuted": refuted["ring"] + refuted["disc ∪ disc"] + refuted["ℓ½ ball"],
        }

    def test_functions(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.seed)
        x = torch.linspace(-2, 2, 401, dtype=torch.float64)
        figure, axes = subplots(2, 4, size=(12.5, 5.2))
        refuted, has_negative_curvature = {}, {}
        ends = torch.tensor([-1.5, 1.0], dtype=torch.float64)
        for (ax, lower_ax), (name, f), colour in zip(axes.T, FUNCTIONS.items(), PALETTE, strict=False):
            values = vmap(f)(x[:, None])
            ax.plot(x, values, color=colour)
            ax.plot(ends, vmap(f)(ends[:, None]), color=INK, marker="o", markersize=4, linewidth=1.2)
            level = float(values.min() + 0.45 * (values.max() - values.min()))
            in_sublevel_set = sublevel_set(f, level)(x[:, None])
            bottom = values.min() - 0.12 * (values.max() - values.min())
            top = bottom + 0.04 * (values.max() - values.min())
            ax.fill_between(x, bottom, top, where=in_sublevel_set, color=colour, alpha=0.6)
            ax.axhline(level, color=FAINT, linestyle=":", linewidth=1)
            ax.set_title(name)
            chord = find_violating_chord(f, x[:, None], generator=generator, num_trials=self.num_trials)
            refuted[name] = float(chord is not None)
            second = min_hessian_eigenvalue(f, x[x != 0, None])
            has_negative_curvature[name] = float(second.min() < -1e-9)
            lower_ax.plot(x[x != 0], second, color=colour)
            lower_ax.axhline(0, color=INK, linewidth=1)
            lower_ax.set(ylim=(-10.5, 10.5) if name == "cos πx" else (-2, 2), xlabel="x")
            if chord is not None:
                chord_ends = torch.stack([chord.a, chord.b])
                ax.plot(
                    chord_ends[:, 0],
                    vmap(f)(chord_ends),
                    color=INK,
                    marker="o",
                    markersize=4,
                    linewidth=1.2,
                    linestyle="--",
                )
        axes[0, 0].set_ylabel("f")
        axes[1, 0].set_ylabel("f″")
        run.figure(
            "convex and non-convex functions",
            figure,
            "Top: the chord over [−1.5, 1] lies above ½x² and exp(x/2), as every chord does, and not above cos πx; the "
            "dashed chord is the most violating one found. The bar marks the sublevel set of the dotted level: an "
            "interval for convex functions, but also for √|x|, which is not convex. Bottom: f″ is non-negative "
            "everywhere for the convex functions only.",
        )
        return {
            "convex_functions_refuted": refuted["½x²"] + refuted["exp(x/2)"],
            "other_functions_refuted": refuted["cos πx"] + refuted["√|x|"],
            "test_disagreements": sum(abs(refuted[name] - has_negative_curvature[name]) for name in FUNCTIONS),
        }


def disc(centre: float = 0.0, radius: float = 1.0) -> TensorFunction:
    """Membership function of the disc around (centre, 0)."""
    return lambda x: (x - torch.tensor([centre, 0.0]).double()).square().sum(-1) <= radius**2


def plot_set(ax: "Axes", contains: TensorFunction, colour: str) -> None:
    """Plot a set as a coloured area."""
    line = torch.linspace(-1.5, 1.5, 241, dtype=torch.float64)
    points = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1)
    inside = contains(points.reshape(-1, 2)).reshape(241, 241).double()
    ax.contourf(line, line, inside, levels=[0.5, 1.5], colors=[colour], alpha=0.45)
    ax.set(aspect="equal")
    remove_frame(ax)
