"""What it costs to tell an image by a code: reading out the code, and correcting what comes of it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from parnassus.report.ink import FAINT, INK, PALETTE, subplots

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_bill(bills: Mapping[str, tuple[float, float]], nll: float) -> "Figure":
    """Rate and distortion of each name as bars end to end, and the floor below which no code can go."""
    figure, axes = subplots(size=(7.2, 2.2))
    ax = axes[0, 0]
    for name, (rate, distortion) in bills.items():
        ax.barh(name, rate, color=PALETTE[1], height=0.6, label="rate: reading out the code" if rate else None)
        ax.barh(
            name, distortion, left=rate, color=PALETTE[0], height=0.6,
            label="distortion: correcting the pixels" if rate else None,
        )  # fmt: skip
        for value, middle in ((rate, rate / 2), (distortion, rate + distortion / 2)):
            if value:
                ax.text(middle, name, f"{value:.1f}", ha="center", va="center", color="white", fontweight="bold")
    ax.axvline(nll, color=INK, linestyle="--", linewidth=1.4, label=f"−log p(x) ≈ {nll:.1f}")
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("nats an image")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.32), ncols=3)
    return figure


def draw_plane(rates: Sequence[float], distortions: Sequence[float], nll: float) -> "Figure":
    """Training as a path in the plane of rate and distortion, with lines of equal sum."""
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
    floor = f"the least bill, −log p(x) ≈ {nll:.1f}"
    ax.plot([left, right], [nll - left, nll - right], color=INK, linewidth=1.4, label=floor)
    ax.plot(x, y, color=PALETTE[0], marker="o", markersize=3, linewidth=1, label="training")
    ax.plot(x[-1:], y[-1:], color=PALETTE[1], marker="o", markersize=9, linestyle="none", label="its end")
    ax.set(xlabel="rate (nats)", ylabel="distortion (nats)", xlim=(left, right), ylim=(bottom, top))
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
