"""Cross-entropy, KL, L¹ and L² between Bernoulli distributions: unbounded and bounded divergences (Diehl fig. 3)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.probability import (
    cross_entropy_between,
    jeffreys_divergence,
    jensen_shannon_divergence,
    kl_divergence,
    lp_distance,
    total_variation,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Positive, Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D1.4.2", "D1.4.3", "D1.4.4", "D1.4.6", "D1.4.7", "D1.4.8")
expected = {
    "max_cross_entropy": between(6.1, 6.3, "maximum cross-entropy on the grid, in nats"),
    "max_l1_distance": between(1.98, 2.0, "maximum L¹ distance, which is at most 2"),
    "min_entropy": between(0.014, 0.015, "minimum entropy, the cross-entropy of p with itself"),
    "max_self_kl": at_most(1e-12, "maximum |KL| of a distribution with itself"),
    "cross_entropy_minus_kl": at_least(0.0, "minimum of cross-entropy minus KL, which is the entropy of p"),
    "pinsker_ratio": between(0.999, 1.0, "maximum of TV / √(KL/2), at most 1 by Pinsker's inequality"),
    "jensen_shannon_ratio": between(0.97, 1.0, "ratio of the maximum Jensen-Shannon divergence to its bound log 2"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"grid_size": 21}, "gpu": {}}

Distance = Callable[[Tensor, Tensor], Tensor]
SURFACES: dict[str, tuple[Distance, str]] = {
    "cross-entropy": (cross_entropy_between, PALETTE[1]),
    "KL(p ‖ q)": (kl_divergence, PALETTE[2]),
    "L¹": (partial(lp_distance, order=1.0), PALETTE[0]),
    "L²": (partial(lp_distance, order=2.0), PALETTE[6]),
}
SLICES: dict[str, tuple[Distance, str]] = {
    **SURFACES,
    "KL(q ‖ p)": (lambda p, q: kl_divergence(q, p), PALETTE[4]),
    "total variation": (total_variation, PALETTE[5]),
}
SYMMETRIC: dict[str, tuple[Distance, str]] = {
    "half of Jeffreys": (lambda p, q: jeffreys_divergence(p, q) / 2, PALETTE[1]),
    "Jensen-Shannon": (jensen_shannon_divergence, PALETTE[2]),
    "total variation": (total_variation, PALETTE[5]),
}


@dataclass(frozen=True)
class Experiment:
    grid_size: Positive[int] = 101  # grid points along p and along q
    margin: Positive[float] = 0.002  # distance of the grid from 0 and 1

    def __call__(self, run: Run) -> dict[str, float]:
        grid = torch.linspace(self.margin, 1 - self.margin, self.grid_size, dtype=torch.float64)
        p, q = bernoulli(grid)[:, None], bernoulli(grid)[None, :]
        heights = {name: distance(p, q) for name, (distance, _) in SURFACES.items()}
        run.figure(
            "divergence surfaces",
            plot_surfaces(grid, heights),
            "Cross-entropy, KL divergence, L¹ and L² distance between Bernoulli(p) and Bernoulli(q). Only "
            "cross-entropy and KL are unbounded at q = 0 and q = 1. Along p = q, KL, L¹ and L² are 0 and "
            "cross-entropy is the entropy of p (Diehl fig. 3).",
        )
        fixed = (0.5, 0.8, 1.0)
        run.figure(
            "slices",
            plot_slices(SLICES, fixed, grid, top=3.0),
            "The divergences as functions of q for fixed p (dashed), with reverse KL and total variation. "
            "Cross-entropy is KL plus a constant, with the same derivative. At p = 1, a one-hot label, the two agree "
            "and KL(q ‖ p) is infinite for every q < 1 (not drawn). For two outcomes L¹ is twice the total variation "
            "and L² is √2 times it.",
        )
        run.figure(
            "symmetric divergences",
            plot_slices(SYMMETRIC, (0.5, 0.8, 1.0), grid, top=2.0, level=("log 2", float(torch.tensor(2.0).log()))),
            "Symmetric divergences. The mean of both KL directions, half of Jeffreys' divergence, is unbounded; the "
            "Jensen-Shannon divergence is at most log 2 (book eq. 6.5).",
        )
        cross, kl = heights["cross-entropy"], heights["KL(p ‖ q)"]
        off_diagonal = ~torch.eye(self.grid_size, dtype=torch.bool)
        pinsker = total_variation(p, q)[off_diagonal] / (kl[off_diagonal] / 2).sqrt()
        run.note(
            "results",
            f"The largest cross-entropy on this grid is −log {self.margin:g} = {float(cross.max()):.2f} and would be "
            f"infinite without the margin; L¹ is at most 2. Total variation is at most √(KL/2) (Pinsker) and reaches "
            f"{float(pinsker.max()):.4f} of this bound for nearly equal distributions.",
        )
        return {
            "max_cross_entropy": float(cross.max()),
            "max_l1_distance": float(heights["L¹"].max()),
            "min_entropy": float(cross.diagonal().min()),
            "max_self_kl": float(kl.diagonal().abs().max()),
            "cross_entropy_minus_kl": float((cross - kl).min()),
            "pinsker_ratio": float(pinsker.max()),
            "jensen_shannon_ratio": float(jensen_shannon_divergence(p, q).max() / torch.tensor(2.0).log()),
        }


def bernoulli(p: Tensor) -> Tensor:
    """(p, 1 − p) for every success probability p."""
    return torch.stack([p, 1 - p], -1)


def plot_surfaces(grid: Tensor, heights: Mapping[str, Tensor]) -> "Figure":
    figure, axes = subplots(2, 2, size=(9.0, 7.6), three_d=True)
    first, second = torch.meshgrid(grid, grid, indexing="ij")
    for ax, (name, height) in zip(axes.flat, heights.items(), strict=True):
        colour = SURFACES[name][1]
        ax.computed_zorder = False  # draws the diagonal on top
        ax.plot_surface(first, second, height, color=colour, linewidth=0, antialiased=False, rcount=80, ccount=80)
        ax.collections[0].set_rasterized(True)
        ax.plot(grid, grid, height.diagonal(), color=INK, linewidth=1.5, zorder=10)
        ax.set(title=name, xlabel="p", ylabel="q", zlim=(0, 6.5), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        ax.view_init(elev=24, azim=-58)
    return figure


def plot_slices(
    distances: Mapping[str, tuple[Distance, str]],
    fixed: tuple[float, ...],
    grid: Tensor,
    *,
    top: float,
    level: tuple[str, float] | None = None,
) -> "Figure":
    """One panel for each fixed p, one curve over q for each divergence."""
    figure, axes = subplots(1, len(fixed), size=(10.0, 3.6))
    for ax, p in zip(axes[0], fixed, strict=True):
        for name, (distance, colour) in distances.items():
            width = 3.6 if distance is cross_entropy_between else 1.6  # stays visible under KL where both agree
            height = distance(bernoulli(torch.tensor(p, dtype=torch.float64)), bernoulli(grid))
            ax.plot(grid, height.where(height.isfinite(), torch.nan), color=colour, linewidth=width, label=name)
        ax.axvline(p, color=FAINT, linestyle="--", linewidth=1)
        if level is not None:
            ax.axhline(level[1], color=FAINT, linestyle=":", linewidth=1.4)
            ax.annotate(level[0], (0.5, level[1]), xytext=(0, 2), textcoords="offset points", fontsize=8)
        ax.set(title=f"p = {p:g}", xlabel="q", ylim=(0, top))
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure
