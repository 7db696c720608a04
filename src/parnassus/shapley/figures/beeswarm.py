"""Beeswarm and dependence plots: attributions of many rows against the features' values."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from parnassus.report.style import FAINT, PALETTE, as_array, subplots

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from numpy.typing import NDArray


def plot_beeswarm(
    attributions: object, features: object, names: Sequence[str], *, max_display: int = 12, x_label: str = ""
) -> "Figure":
    """One dot per row and feature at its attribution, coloured by the feature's value; sorted by importance."""
    attributed, values = as_array(attributions), as_array(features)
    if attributed.shape != values.shape or attributed.shape[1] != len(names):
        raise ValueError(
            f"attributions, features and names must match; got {attributed.shape}, {values.shape} and {len(names)}"
        )
    order = np.argsort(np.abs(attributed).mean(0))[-max_display:]
    figure, axes = subplots(size=(7.2, 1.2 + 0.42 * len(order)))
    ax = axes[0, 0]
    for row, feature in enumerate(order):
        column, ranks = attributed[:, feature], _ranks(values[:, feature])
        dots = ax.scatter(
            column,
            row + _beeswarm_offsets(column),
            c=ranks,
            cmap=feature_value_colormap(),
            vmin=0.0,
            vmax=1.0,
            s=9,
            linewidths=0,
        )
    ax.axvline(0, color=FAINT, linewidth=1)
    ax.set_yticks(range(len(order)), [names[feature] for feature in order])
    ax.set_xlabel(x_label)
    ax.grid(visible=False, axis="y")
    bar = figure.colorbar(dots, ax=ax, ticks=[0, 1], fraction=0.03, pad=0.02)
    bar.ax.set_yticklabels(["low", "high"])
    bar.set_label("feature value", labelpad=-14)
    bar.outline.set_visible(False)
    return figure


def plot_dependence(
    feature: object, attribution: object, colour_by: object, *, name: str, colour_name: str, y_label: str = ""
) -> "Figure":
    """The attribution of one feature against its value, coloured by another feature to show their interaction."""
    figure, axes = subplots(size=(6.0, 4.0))
    ax = axes[0, 0]
    dots = ax.scatter(
        as_array(feature),
        as_array(attribution),
        c=as_array(colour_by),
        cmap=feature_value_colormap(),
        s=14,
        linewidths=0,
    )
    ax.axhline(0, color=FAINT, linewidth=1)
    ax.set(xlabel=name, ylabel=y_label)
    figure.colorbar(dots, ax=ax, label=colour_name).outline.set_visible(False)
    return figure


def feature_value_colormap() -> "Colormap":
    """From blue for low to orange for high values; every colour is visible on a white and on a black page."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("low to high", [PALETTE[0], PALETTE[3], PALETTE[1]])


def _ranks(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """From 0 for the lowest value to 1 for the highest, equal for equal values; 1/2 if all are equal, or missing."""
    ranks, known = np.full(len(values), 0.5), ~np.isnan(values)
    different, indices = np.unique(values[known], return_inverse=True)
    if len(different) > 1:
        ranks[known] = indices / (len(different) - 1)
    return ranks


def _beeswarm_offsets(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Vertical offsets that separate overlapping dots, proportional to their local number."""
    span = float(np.ptp(values)) or 1.0
    bins = np.floor((values - values.min()) / span * 60).astype(int)
    heights = np.zeros(len(values))
    for index in np.unique(bins):
        here = np.flatnonzero(bins == index)
        heights[here] = (np.arange(len(here)) + 1) // 2 * np.where(np.arange(len(here)) % 2, 1, -1)
    return heights * (0.4 / max(1.0, float(np.abs(heights).max())))
