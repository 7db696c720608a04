"""Learning curves of several learners, and KL divergences of policy updates."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from parnassus.report.plots import set_integer_ticks
from parnassus.report.style import FAINT, INK, PALETTE, as_array, subplots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curve: TypeAlias = tuple[Sequence[int] | Sequence[float], Sequence[float]]
"""Steps and values."""


def plot_learning_curves(
    curves: Mapping[str, Curve],
    *,
    threshold: float | None = None,
    x_label: str = "environment steps per learner",
    y_label: str = "mean return of the last 100 episodes",
) -> "Figure":
    """One thin line per learner, a thick line for their mean, and a dashed line at the reward threshold."""
    figure, axes = subplots(size=(7.2, 3.8))
    ax = axes[0, 0]
    for steps, returns in curves.values():
        ax.plot(steps, returns, "." if len(steps) == 1 else "-", color=PALETTE[5], linewidth=1.0, alpha=0.8)
    lengths = {len(steps) for steps, _ in curves.values()}
    if len(curves) > 1 and len(lengths) == 1:
        steps = next(iter(curves.values()))[0]
        ax.plot(steps, np.mean([own for _, own in curves.values()], 0), color=INK, linewidth=1.8, label="mean")
    if threshold is not None:
        ax.axhline(threshold, color=FAINT, linestyle="--", linewidth=1.2, label=f"{threshold:g}")
    ax.set(xlabel=x_label, ylabel=y_label)
    set_integer_ticks(ax.xaxis)
    if ax.get_legend_handles_labels()[1]:
        ax.legend()
    return figure


def plot_divergences(
    curves: Mapping[str, Curve],
    *,
    threshold: float,
    x_label: str = "environment steps per learner",
    y_label: str = "KL divergence of an update",
) -> "Figure":
    """One dot for each update of each learner, and a line at the maximum allowed divergence."""
    figure, axes = subplots(size=(7.2, 3.2))
    ax = axes[0, 0]
    for steps, kl in curves.values():
        ax.plot(steps, kl, ".", color=PALETTE[5], markersize=4, alpha=0.7)
    ax.axhline(threshold, color=PALETTE[1], linewidth=1.4, label=f"threshold {threshold:g}")
    ax.set(xlabel=x_label, ylabel=y_label)
    ax.set_ylim(0, 1.25 * threshold)
    set_integer_ticks(ax.xaxis)
    ax.legend(loc="upper right")
    return figure


def learners_table(returns: object) -> list[dict[str, str | float]]:
    """One row per learner: mean, standard deviation, minimum and maximum of its episode returns."""
    return [
        {
            "learner": str(index + 1),
            "mean": round(float(own.mean()), 2),
            "std": round(float(own.std()), 2),
            "min": round(float(own.min()), 2),
            "max": round(float(own.max()), 2),
        }
        for index, own in enumerate(as_array(returns))
    ]
