"""How sure predictions say they are, beside how right they turn out to be."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from parnassus.report.ink import FAINT, as_array, colours, subplots
from parnassus.report.plots import image_grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Calibration(NamedTuple):
    """Points of a calibration plot: what was stated, what was observed, and the ends of an interval about that."""

    stated: object
    observed: object
    low: object
    high: object


def calibration_plot(found: Mapping[str, Calibration], *, x_label: str, y_label: str) -> "Figure":
    """Stated against observed shares, with their intervals; on the diagonal one is as often right as one says."""
    figure, axes = subplots(size=(4.6, 4.2))
    ax = axes[0, 0]
    ax.plot([0, 1], [0, 1], color=FAINT, linestyle="--", linewidth=1)
    for (name, points), colour in zip(found.items(), colours(len(found)), strict=True):
        stated, observed, low, high = (as_array(part) for part in points)
        ax.vlines(stated, low, high, color=colour, linewidth=1.2, alpha=0.6)
        ax.plot(stated, observed, "o", color=colour, markersize=4, label=name)
    ax.set(xlabel=x_label, ylabel=y_label, xlim=(0, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.legend(loc="upper left")
    return figure


def most_and_least_certain(
    pictures: object, probabilities: object, truth: object, classes: Sequence[str], *, each: int | None = None
) -> "Figure":
    """The pictures with the largest and the smallest probability of the class named, which stands above them.

    Where it is wrong, the true class follows in brackets. Long names leave room for five in a row, short ones for ten.
    """
    short = max(map(len, classes)) <= 3
    each = each or (10 if short else 5)
    shares, right = as_array(probabilities), as_array(truth).astype(int)
    if shares.shape != (len(right), len(classes)) or len(as_array(pictures)) != len(right):
        raise ValueError(f"need probabilities (pictures, classes) and a class each; got {shares.shape}, {len(right)}")
    sure, named = shares.max(1), shares.argmax(1)
    order = np.argsort(-sure, kind="stable")
    rows = np.concatenate([order[:each], order[-each:]])
    titles = [
        f"{classes[named[row]]}: {sure[row]:.2f}" + ("" if named[row] == right[row] else f" ({classes[right[row]]})")
        for row in rows
    ]
    return image_grid(
        as_array(pictures)[rows],
        columns=len(order[:each]),
        titles=titles,
        row_labels=["most", "least"],
        scale=1.0 if short else 1.6,
    )


def predicted_numbers(truth: object, mean: object, reach: object) -> "Figure":
    """Predictions over the truth, each with a bar of ± `reach`."""
    figure, axes = subplots(size=(4.8, 4.2))
    ax = axes[0, 0]
    true = as_array(truth)
    ax.errorbar(true, as_array(mean), as_array(reach), fmt="o", markersize=3, elinewidth=0.6, alpha=0.6)
    ends = [true.min(), true.max()]
    ax.plot(ends, ends, color=FAINT, linestyle="--", linewidth=1)
    ax.set(xlabel="target, standardised", ylabel="predicted")
    return figure
