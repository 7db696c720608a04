"""Figures of rate and distortion (book sec. 6.4), and of vector fields in the plane (book sec. 4.4)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from parnassus.report.style import FAINT, INK, PALETTE, as_array, subplots

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_rate_and_distortion(costs: Mapping[str, tuple[float, float]], nll: float) -> "Figure":
    """Stacked bars of the rate and distortion of each code, with the lower bound −log p(x) of their sum."""
    figure, axes = subplots(size=(7.2, 2.2))
    ax = axes[0, 0]
    for name, (rate, distortion) in costs.items():
        ax.barh(name, rate, color=PALETTE[1], height=0.6, label="rate: the code" if rate else None)
        ax.barh(
            name, distortion, left=rate, color=PALETTE[0], height=0.6,
            label="distortion: the pixels given the code" if rate else None,
        )  # fmt: skip
        for value, middle in ((rate, rate / 2), (distortion, rate + distortion / 2)):
            if value:
                ax.text(middle, name, f"{value:.1f}", ha="center", va="center", color="white", fontweight="bold")
    ax.axvline(nll, color=INK, linestyle="--", linewidth=1.4, label=f"−log p(x) ≈ {nll:.1f}")
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("nats per image")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.32), ncols=3)
    return figure


def plot_rate_distortion_trajectory(rates: Sequence[float], distortions: Sequence[float], nll: float) -> "Figure":
    """Training as a trajectory in the rate-distortion plane, with lines of equal sum."""
    figure, axes = subplots(size=(6.4, 4.4))
    ax = axes[0, 0]
    shown = slice(len(rates) // 10, None)  # the first steps are far away
    x, y = np.array(rates[shown]), np.array(distortions[shown])
    left, right = x.min() - 3, x.max() + 3
    bottom, top = min(y.min(), nll - x[-1]) - 3, y.max() + 3
    totals = np.linspace(nll, left + top, 6)
    for total in totals[1:-1]:
        ax.plot([left, right], [total - left, total - right], color=FAINT, linestyle="--", linewidth=0.8, zorder=1)
        ax.annotate(
            f"{total:.0f}", (left, min(total - left, top)), xytext=(3, -12), textcoords="offset points", color=FAINT
        )
    bound = f"rate + distortion = −log p(x) ≈ {nll:.1f}"
    ax.plot([left, right], [nll - left, nll - right], color=INK, linewidth=1.4, label=bound)
    ax.plot(x, y, color=PALETTE[0], marker="o", markersize=3, linewidth=1, label="training")
    ax.plot(x[-1:], y[-1:], color=PALETTE[1], marker="o", markersize=9, linestyle="none", label="end of training")
    ax.set(xlabel="rate (nats)", ylabel="distortion (nats)", xlim=(left, right), ylim=(bottom, top))
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def plot_vector_field(points: object, vectors: object, *, background: object | None = None) -> "Figure":
    """A vector field: an arrow at each point (n, 2), over `background` points."""
    start, arrow = as_array(points), as_array(vectors)
    figure, axes = subplots(size=(5.2, 5.0))
    ax = axes[0, 0]
    if background is not None:
        cloud = as_array(background)
        ax.scatter(cloud[:, 0], cloud[:, 1], s=6, color=PALETTE[1], linewidths=0, alpha=0.8, rasterized=True)
    ax.quiver(
        start[:, 0], start[:, 1], arrow[:, 0], arrow[:, 1], color=PALETTE[0], angles="xy", scale_units="xy", scale=1
    )
    ax.set_aspect("equal")
    return figure
