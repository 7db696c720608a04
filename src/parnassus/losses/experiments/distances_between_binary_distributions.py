"""Cross-entropy, KL, L¹ and L² between two coins: which blow up, which vanish on the diagonal (Diehl fig. 3)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.probability import (
    cross_entropy_between,
    jeffreys,
    jensen_shannon,
    kl_divergence,
    lp_distance,
    total_variation,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D1.4.2", "D1.4.3", "D1.4.4", "D1.4.6", "D1.4.7", "D1.4.8")
expected = {
    "highest_cross_entropy": between(6.1, 6.3, "the highest cross-entropy on the grid, in nats"),
    "highest_l1": between(1.98, 2.0, "the highest L¹ distance, which cannot pass 2"),
    "lowest_on_the_diagonal": between(0.014, 0.015, "cross-entropy of the most one-sided coin with itself"),
    "kl_on_the_diagonal": at_most(1e-12, "KL of a coin with itself, at most"),
    "cross_entropy_minus_kl": at_least(0.0, "the least by which cross-entropy passes KL, which is an entropy"),
    "pinsker": between(0.999, 1.0, "the largest TV / √(KL/2)"),
    "jensen_shannon_share": between(0.97, 1.0, "the highest Jensen-Shannon divergence over log 2"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"points": 21}, "gpu": {}}

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
    "half of Jeffreys": (lambda p, q: jeffreys(p, q) / 2, PALETTE[1]),
    "Jensen-Shannon": (jensen_shannon, PALETTE[2]),
    "total variation": (total_variation, PALETTE[5]),
}


@dataclass(frozen=True)
class Experiment:
    points: int = 101  # points of the grid along p and along q
    edge: float = 0.002  # the grid goes from edge to 1 − edge

    def __call__(self, run: Run) -> dict[str, float]:
        heads = torch.linspace(self.edge, 1 - self.edge, self.points, dtype=torch.float64)
        p, q = coin(heads)[:, None], coin(heads)[None, :]
        heights = {name: distance(p, q) for name, (distance, _) in SURFACES.items()}
        run.figure(
            "four distances",
            draw_surfaces(heads, heights),
            "Four ways to compare coins that show heads with chance p and q, all on one scale. Only cross-entropy and "
            "KL rise without bound at the edges q = 0 and q = 1; KL, L¹ and L² are 0 along p = q, cross-entropy is "
            "there the entropy of the coin (Diehl fig. 3).",
        )
        fixed = (0.5, 0.8, 1.0)
        run.figure(
            "slices",
            draw_slices(SLICES, fixed, heads, top=3.0),
            "The same for a fixed coin p (dashed), with KL the other way round and total variation. Cross-entropy is "
            "KL plus a constant, with the same slope. At p = 1, a one-hot label, the two agree and KL(q ‖ p) is "
            "infinite for every q below 1, so nothing of it is drawn. For two outcomes L¹ is twice total variation and "
            "L² is √2 times it.",
        )
        run.figure(
            "symmetric divergences",
            draw_slices(SYMMETRIC, (0.5, 0.8, 1.0), heads, top=2.0, level=("log 2", float(torch.tensor(2.0).log()))),
            "Two ways to make KL symmetric. The mean of both directions, half of Jeffreys' divergence, is unbounded; "
            "Jensen-Shannon, which goes through the mean of the two coins, never passes log 2 (book eq. 6.5).",
        )
        cross, kl = heights["cross-entropy"], heights["KL(p ‖ q)"]
        off = ~torch.eye(self.points, dtype=torch.bool)
        pinsker = total_variation(p, q)[off] / (kl[off] / 2).sqrt()
        run.note(
            "what to see",
            f"The highest cross-entropy on this grid is −log {self.edge:g} = {float(cross.max()):.2f} and would be "
            f"infinite without the margin; no L¹ distance passes 2. Total variation is at most √(KL/2), and comes to "
            f"{float(pinsker.max()):.4f} of it for nearly equal coins.",
        )
        return {
            "highest_cross_entropy": float(cross.max()),
            "highest_l1": float(heights["L¹"].max()),
            "lowest_on_the_diagonal": float(cross.diagonal().min()),
            "kl_on_the_diagonal": float(kl.diagonal().abs().max()),
            "cross_entropy_minus_kl": float((cross - kl).min()),
            "pinsker": float(pinsker.max()),
            "jensen_shannon_share": float(jensen_shannon(p, q).max() / torch.tensor(2.0).log()),
        }


def coin(heads: Tensor) -> Tensor:
    """(p, 1 − p) for every chance p of heads."""
    return torch.stack([heads, 1 - heads], -1)


def draw_surfaces(heads: Tensor, heights: Mapping[str, Tensor]) -> "Figure":
    figure, axes = subplots(2, 2, size=(9.0, 7.6), three_d=True)
    first, second = torch.meshgrid(heads, heads, indexing="ij")
    for ax, (name, height) in zip(axes.flat, heights.items(), strict=True):
        colour = SURFACES[name][1]
        ax.computed_zorder = False  # the diagonal stays in sight
        ax.plot_surface(first, second, height, color=colour, linewidth=0, antialiased=False, rcount=80, ccount=80)
        ax.collections[0].set_rasterized(True)
        ax.plot(heads, heads, height.diagonal(), color=INK, linewidth=1.5, zorder=10)
        ax.set(title=name, xlabel="p", ylabel="q", zlim=(0, 6.5), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        ax.view_init(elev=24, azim=-58)
    return figure


def draw_slices(
    distances: Mapping[str, tuple[Distance, str]],
    fixed: tuple[float, ...],
    heads: Tensor,
    *,
    top: float,
    level: tuple[str, float] | None = None,
) -> "Figure":
    """A panel for each fixed p, a line over q for each distance."""
    figure, axes = subplots(1, len(fixed), size=(10.0, 3.6))
    for ax, p in zip(axes[0], fixed, strict=True):
        for name, (distance, colour) in distances.items():
            width = 3.6 if distance is cross_entropy_between else 1.6  # it shows from under KL where both agree
            height = distance(coin(torch.tensor(p, dtype=torch.float64)), coin(heads))
            ax.plot(heads, height.where(height.isfinite(), torch.nan), color=colour, linewidth=width, label=name)
        ax.axvline(p, color=FAINT, linestyle="--", linewidth=1)
        if level is not None:
            ax.axhline(level[1], color=FAINT, linestyle=":", linewidth=1.4)
            ax.annotate(level[0], (0.5, level[1]), xytext=(0, 2), textcoords="offset points", fontsize=8)
        ax.set(title=f"p = {p:g}", xlabel="q", ylim=(0, top))
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure
