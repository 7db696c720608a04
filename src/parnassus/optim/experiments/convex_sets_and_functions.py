"""Convex sets and functions in pictures, with counterexamples found by random search (Zhao sec. 12)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.func import vmap

from parnassus.optim import (
    below_set,
    find_escape,
    find_low_chord,
    intersection,
    least_curvature,
    union,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.report.ink import plain
from parnassus.train import Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes

covers = ("Z12.2", "Z12.3", "Z12.4", "Z12.8", "Z12.9")
expected = {
    "convex_sets_refuted": at_most(0.0, "convex sets for which the checker found a segment that leaves"),
    "other_sets_refuted": between(3.0, 3.0, "the same of ring, two discs and ℓ½ ball"),
    "convex_functions_refuted": at_most(0.0, "convex functions for which it found a chord below the graph"),
    "other_functions_refuted": between(2.0, 2.0, "the same of cos πx and √|x|"),
    "tests_that_disagree": at_most(0.0, "functions of which chords and second derivatives say different things"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"tries": 2_000}, "gpu": {}}

Curve = Callable[[Tensor], Tensor]
FUNCTIONS: dict[str, Curve] = {
    "½x²": lambda x: x.square().sum() / 2,
    "cos πx": lambda x: (pi * x).cos().sum(),
    "exp(x/2)": lambda x: (x / 2).exp().sum(),
    "√|x|": lambda x: x.abs().sqrt().sum(),
}


@dataclass(frozen=True)
class Experiment:
    tries: int = 20_000  # random segments and chords to test

    def __call__(self, run: Run) -> dict[str, float]:
        result = self.sets(run) | self.functions(run)
        run.note(
            "what to see",
            "A segment or a chord that the checker finds is a proof that set or function is not convex; that it finds "
            f"none among {self.tries:,} is only a sign that it is.",
        )
        return result

    def sets(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.seed)
        cloud = 3 * torch.rand(self.tries, 2, generator=generator, dtype=torch.float64) - 1.5
        slab = intersection(lambda x: x @ torch.tensor([1.0, 0.6]).double() <= 0.5, disc())
        lens = intersection(disc(-0.45), disc(0.45))
        shown = {
            "disc ∩ half-plane": slab,
            "disc ∩ disc": lens,
            "ring": lambda x: disc()(x) & ~disc(radius=0.55)(x),
            "disc ∪ disc": union(disc(-0.85, 0.6), disc(0.85, 0.6)),
            "ℓ½ ball": lambda x: x.abs().sqrt().sum(-1) <= 1,
        }
        figure, axes = subplots(1, 5, size=(12.5, 2.9))
        refuted = {}
        for ax, (name, member), colour in zip(axes[0], shown.items(), PALETTE, strict=False):
            raster(ax, member, colour)
            found = find_escape(member, cloud, generator=generator, tries=self.tries)
            refuted[name] = float(found is not None)
            if found is not None:
                ax.plot(*torch.stack([found.a, found.b]).T, color=INK, marker="o", markersize=4, linewidth=1.4)
                ax.plot(*found.point, "x", color=INK, markersize=7, markeredgewidth=2)
            ax.set_title(name)
        run.figure(
            "convex sets and others",
            figure,
            "The segment between two members of a convex set stays inside, and so it does in an intersection of convex "
            "sets. Of the other three the checker found a segment with a point outside (cross).",
        )
        return {
            "convex_sets_refuted": refuted["disc ∩ half-plane"] + refuted["disc ∩ disc"],
            "other_sets_refuted": refuted["ring"] + refuted["disc ∪ disc"] + refuted["ℓ½ ball"],
        }

    def functions(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.seed)
        x = torch.linspace(-2, 2, 401, dtype=torch.float64)
        figure, axes = subplots(2, 4, size=(12.5, 5.2))
        refuted, curved_down = {}, {}
        ends = torch.tensor([-1.5, 1.0], dtype=torch.float64)
        for (ax, lower), (name, f), colour in zip(axes.T, FUNCTIONS.items(), PALETTE, strict=False):
            values = vmap(f)(x[:, None])
            ax.plot(x, values, color=colour)
            ax.plot(ends, vmap(f)(ends[:, None]), color=INK, marker="o", markersize=4, linewidth=1.2)
            level = float(values.min() + 0.45 * (values.max() - values.min()))
            below = below_set(f, level)(x[:, None])
            floor = values.min() - 0.12 * (values.max() - values.min())
            ax.fill_between(
                x, floor, floor + 0.04 * (values.max() - values.min()), where=below, color=colour, alpha=0.6
            )
            ax.axhline(level, color=FAINT, linestyle=":", linewidth=1)
            ax.set_title(name)
            found = find_low_chord(f, x[:, None], generator=generator, tries=self.tries)
            refuted[name] = float(found is not None)
            second = least_curvature(f, x[x != 0, None])
            curved_down[name] = float(second.min() < -1e-9)
            lower.plot(x[x != 0], second, color=colour)
            lower.axhline(0, color=INK, linewidth=1)
            lower.set(ylim=(-10.5, 10.5) if name == "cos πx" else (-2, 2), xlabel="x")
            if found is not None:
                low = torch.stack([found.a, found.b])
                ax.plot(low[:, 0], vmap(f)(low), color=INK, marker="o", markersize=4, linewidth=1.2, linestyle="--")
        axes[0, 0].set_ylabel("f")
        axes[1, 0].set_ylabel("f″")
        run.figure(
            "convex functions and others",
            figure,
            "Above: the chord over [−1.5, 1] lies above ½x² and exp(x/2), as every chord does, and not above cos πx; "
            "dashed is the lowest chord that the checker found. The bar at the foot is the below set of the dotted "
            "level: an interval for convex functions, but also for √|x|, which is not convex. Below: f″, nowhere "
            "negative for the convex ones alone.",
        )
        return {
            "convex_functions_refuted": refuted["½x²"] + refuted["exp(x/2)"],
            "other_functions_refuted": refuted["cos πx"] + refuted["√|x|"],
            "tests_that_disagree": sum(abs(refuted[name] - curved_down[name]) for name in FUNCTIONS),
        }


def disc(centre: float = 0.0, radius: float = 1.0) -> Curve:
    """Membership in the disc around (centre, 0)."""
    return lambda x: (x - torch.tensor([centre, 0.0]).double()).square().sum(-1) <= radius**2


def raster(ax: "Axes", member: Curve, colour: str) -> None:
    """The set as a coloured area."""
    line = torch.linspace(-1.5, 1.5, 241, dtype=torch.float64)
    points = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1)
    inside = member(points.reshape(-1, 2)).reshape(241, 241).double()
    ax.contourf(line, line, inside, levels=[0.5, 1.5], colors=[colour], alpha=0.45)
    ax.set(aspect="equal")
    plain(ax)
