"""Pictures of parts that sum to a whole: waterfall, swarm, dependence, parts over an image."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from parnassus.report.ink import DIVERGING, FAINT, INK, PALETTE, SEQUENTIAL, as_array, subplots

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

MORE, LESS = PALETTE[1], PALETTE[0]
"""Colours of parts that add and parts that take away."""


def waterfall(
    base: float,
    parts: object,
    names: Sequence[str],
    *,
    errors: object | None = None,
    most: int = 12,
    x_label: str = "",
) -> "Figure":
    """From the base value, part by part, the largest last, to the whole; the smallest beyond `most` are one bar."""
    numbers = as_array(parts)
    if len(numbers) != len(names):
        raise ValueError(f"a name is needed for each part; got {len(names)} names for {len(numbers)} parts")
    doubts = np.zeros_like(numbers) if errors is None else as_array(errors)
    order = np.argsort(np.abs(numbers))
    small = order[: max(0, len(order) - most)]
    shown = [(names[index], numbers[index], doubts[index]) for index in order[len(small) :]]
    if len(small):
        shown.insert(0, (f"{len(small)} others", numbers[small].sum(), np.sqrt(np.square(doubts[small]).sum())))
    figure, axes = subplots(size=(7.2, 1.1 + 0.36 * len(shown)))
    ax = axes[0, 0]
    reached = base
    for row, (_, part, doubt) in enumerate(shown):
        ax.barh(row, part, left=reached, color=MORE if part > 0 else LESS, height=0.7)
        ax.errorbar(reached + part, row, xerr=doubt or None, color=INK, linewidth=1, capsize=2 if doubt else 0)
        reached += part
        ax.plot([reached, reached], [row, row + 1], color=FAINT, linewidth=0.8)
        ax.annotate(
            f"{part:+.3g}",
            (reached, row),
            xytext=(5 if part > 0 else -5, 0),
            textcoords="offset points",
            ha="left" if part > 0 else "right",
            va="center",
            fontsize=8.5,
        )
    for value, where in ((base, -0.75), (reached, len(shown) - 0.25)):
        ax.annotate(f"{value:.4g}", (value, where), ha="center", va="center", fontsize=9, fontweight="bold")
    ax.plot([base, base], [-0.5, 0], color=FAINT, linewidth=0.8)
    ax.set_yticks(range(len(shown)), [name for name, _, _ in shown])
    ax.use_sticky_edges = False  # bars would cling to the frame, and their numbers to the names
    ax.margins(x=0.14)
    ax.set(ylim=(-1.1, len(shown) + 0.1), xlabel=x_label)
    ax.grid(visible=False, axis="y")
    return figure


def swarm(parts: object, features: object, names: Sequence[str], *, most: int = 12, x_label: str = "") -> "Figure":
    """A dot for every row and feature: its part across, coloured by the feature's value; the weightiest on top."""
    numbers, values = as_array(parts), as_array(features)
    if numbers.shape != values.shape or numbers.shape[1] != len(names):
        raise ValueError(f"parts, features and names must match; got {numbers.shape}, {values.shape} and {len(names)}")
    order = np.argsort(np.abs(numbers).mean(0))[-most:]
    figure, axes = subplots(size=(7.2, 1.2 + 0.42 * len(order)))
    ax = axes[0, 0]
    for row, feature in enumerate(order):
        ranks = values[:, feature].argsort().argsort() / max(1, len(values) - 1)
        dots = ax.scatter(
            numbers[:, feature], row + _spread(numbers[:, feature]), c=ranks, cmap=SEQUENTIAL, s=9, linewidths=0
        )
    ax.axvline(0, color=FAINT, linewidth=1)
    ax.set_yticks(range(len(order)), [names[feature] for feature in order])
    ax.set_xlabel(x_label)
    ax.grid(visible=False, axis="y")
    bar = figure.colorbar(dots, ax=ax, ticks=[0, 1], fraction=0.03, pad=0.02)
    bar.ax.set_yticklabels(["low", "high"])
    bar.set_label("value of the feature", labelpad=-14)
    bar.outline.set_visible(False)
    return figure


def dependence(
    feature: object, part: object, other: object, *, name: str, other_name: str, y_label: str = ""
) -> "Figure":
    """The part of one feature against its value, coloured by another: where colours part, the two act together."""
    figure, axes = subplots(size=(6.0, 4.0))
    ax = axes[0, 0]
    dots = ax.scatter(as_array(feature), as_array(part), c=as_array(other), cmap=SEQUENTIAL, s=14, linewidths=0)
    ax.axhline(0, color=FAINT, linewidth=1)
    ax.set(xlabel=name, ylabel=y_label)
    figure.colorbar(dots, ax=ax, label=other_name).outline.set_visible(False)
    return figure


def over_images(images: object, parts: object, titles: Sequence[str]) -> "Figure":
    """Each image (height, width) above its parts: red adds, blue takes away, one scale for all."""
    pictures, numbers = as_array(images), as_array(parts)
    if pictures.shape != numbers.shape or len(pictures) != len(titles):
        raise ValueError(f"images, parts and titles must match; got {pictures.shape}, {numbers.shape}, {len(titles)}")
    figure, axes = subplots(2, len(pictures), size=(1.5 * len(pictures), 3.4))
    most = np.abs(numbers).max() or 1.0
    for column, (picture, part, title) in enumerate(zip(pictures, numbers, titles, strict=True)):
        axes[0, column].imshow(picture, cmap="gray")
        axes[1, column].imshow(part, cmap=DIVERGING, vmin=-most, vmax=most)
        axes[0, column].set_title(title, fontsize=9)
        for ax in axes[:, column]:
            ax.set(xticks=[], yticks=[])
            ax.grid(visible=False)
    return figure


def _spread(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Heights that part dots which would lie upon each other: the more there are at a place, the higher the pile."""
    span = float(np.ptp(values)) or 1.0
    bins = np.floor((values - values.min()) / span * 60).astype(int)
    heights = np.zeros(len(values))
    for place in np.unique(bins):
        here = np.flatnonzero(bins == place)
        heights[here] = (np.arange(len(here)) + 1) // 2 * np.where(np.arange(len(here)) % 2, 1, -1)
    return heights * (0.4 / max(1.0, float(np.abs(heights).max())))
