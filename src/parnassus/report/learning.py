"""Pictures of agents that learn: returns of many learners over the steps they took."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from parnassus.report.ink import FAINT, INK, PALETTE, as_array, subplots
from parnassus.report.plots import whole_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def learning_curves(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    goal: float | None = None,
    x_label: str = "steps of each learner",
    y_label: str = "return of an episode, mean of the last hundred",
) -> "Figure":
    """A thin line for each learner, and their mean, thick; a dashed line at what counts as solved."""
    figure, axes = subplots(size=(7.2, 3.8))
    ax = axes[0, 0]
    for steps, returns in curves.values():
        ax.plot(steps, returns, "." if len(steps) == 1 else "-", color=PALETTE[5], linewidth=1.0, alpha=0.8)
    lengths = {len(steps) for steps, _ in curves.values()}
    if len(curves) > 1 and len(lengths) == 1:
        steps = next(iter(curves.values()))[0]
        ax.plot(steps, np.mean([own for _, own in curves.values()], 0), color=INK, linewidth=1.8, label="mean")
    if goal is not None:
        ax.axhline(goal, color=FAINT, linestyle="--", linewidth=1.2, label=f"{goal:g}")
    ax.set(xlabel=x_label, ylabel=y_label)
    whole_ticks(ax.xaxis)
    if ax.get_legend_handles_labels()[1]:
        ax.legend()
    return figure


def divergences(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    threshold: float,
    x_label: str = "steps of each learner",
    y_label: str = "divergence of a step",
) -> "Figure":
    """A dot for each step of each learner, and the line that none may cross."""
    figure, axes = subplots(size=(7.2, 3.2))
    ax = axes[0, 0]
    for steps, spent in curves.values():
        ax.plot(steps, spent, ".", color=PALETTE[5], markersize=4, alpha=0.7)
    ax.axhline(threshold, color=PALETTE[1], linewidth=1.4, label=f"threshold {threshold:g}")
    ax.set(xlabel=x_label, ylabel=y_label)
    ax.set_ylim(0, 1.25 * threshold)
    whole_ticks(ax.xaxis)
    ax.legend(loc="upper right")
    return figure


def learners_table(returns: object) -> list[dict[str, str | float]]:
    """A row for each learner: the mean of its episodes, their spread, the worst and the best."""
    return [
        {
            "learner": index + 1,
            "mean": round(float(own.mean()), 2),
            "spread": round(float(own.std()), 2),
            "worst": round(float(own.min()), 2),
            "best": round(float(own.max()), 2),
        }
        for index, own in enumerate(as_array(returns))
    ]
