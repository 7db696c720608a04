"""Pictures of parts that sum to a whole: waterfall, swarm, dependence, parts over an image."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from parnassus.report.ink import DIVERGING, FAINT, INK, PALETTE, as_array, plain, subplots
from parnassus.report.numbers import number
from parnassus.report.plots import show_image

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

MORE, LESS = PALETTE[1], PALETTE[0]
"""Colours of parts that add and parts that take away."""
ROUNDING = 1e-12
"""Share of the largest number in a sum below which a part is nothing but its rounding."""


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
    shown = largest_parts(as_array(parts), names, None if errors is None else as_array(errors), most)
    figure, axes = subplots(size=(7.2, 1.1 + 0.36 * len(shown)))
    ax = axes[0, 0]
    reached, largest = base, max(abs(base), *(abs(part) for _, part, _ in shown))
    for row, (_, part, doubt) in enumerate(shown):
        known, side = np.isfinite(doubt), 1 if part > 0 else -1
        ax.barh(row, part, left=reached, color=MORE if part > 0 else LESS, height=0.7)
        reached += part
        if doubt and known:
            ax.errorbar(reached, row, xerr=doubt, color=INK, linewidth=1, capsize=2)
        ax.plot([reached, reached], [row, row + 1], color=FAINT, linewidth=0.8)
        ax.annotate(
            signed(part, largest, 3) + ("" if known else " ± ∞"),
            (reached + side * doubt if known else reached, row),
            xytext=(5 * side, 0),
            textcoords="offset points",
            ha="left" if part > 0 else "right",
            va="center",
            fontsize=8.5,
        )
    for value, where in ((base, -0.75), (reached, len(shown) - 0.25)):
        ax.annotate(number(value), (value, where), ha="center", va="center", fontsize=9, fontweight="bold")
    ax.plot([base, base], [-0.5, 0], color=FAINT, linewidth=0.8)
    ax.set_yticks(range(len(shown)), [name for name, _, _ in shown])
    ax.use_sticky_edges = False  # bars would cling to the frame, and their numbers to the names
    ax.margins(x=0.17)
    ax.set(ylim=(-1.1, len(shown) + 0.1), xlabel=x_label)
    ax.grid(visible=False, axis="y")
    return figure


def signed(part: float, largest: float, digits: int = 4) -> str:
    """A part with its sign, as people write it; what is but the rounding of the `largest` number in its sum is 0."""
    if abs(part) <= ROUNDING * abs(largest):
        return "0"
    return "+" * (part > 0) + number(part, digits)


def largest_parts(
    numbers: "NDArray[np.float64]", names: Sequence[str], errors: "NDArray[np.float64] | None", most: int
) -> list[tuple[str, float, float]]:
    """Name, part and error from the smallest part to the largest; those beyond `most` come first, as one."""
    if len(numbers) != len(names):
        raise ValueError(f"a name is needed for each part; got {len(names)} names for {len(numbers)} parts")
    doubts = np.zeros_like(numbers) if errors is None else errors
    order = np.argsort(np.abs(numbers))
    small = order[: max(0, len(order) - most)]
    shown = [(names[index], float(numbers[index]), float(doubts[index])) for index in order[len(small) :]]
    if len(small):
        rest = float(numbers[small].sum()), float(np.sqrt(np.square(doubts[small]).sum()))
        shown.insert(0, (f"{len(small)} other{'s' * (len(small) > 1)}", *rest))
    return shown


def swarm(parts: object, features: object, names: Sequence[str], *, most: int = 12, x_label: str = "") -> "Figure":
    """A dot for every row and feature: its part across, coloured by the feature's value; the weightiest on top."""
    numbers, values = as_array(parts), as_array(features)
    if numbers.shape != values.shape or numbers.shape[1] != len(names):
        raise ValueError(f"parts, features and names must match; got {numbers.shape}, {values.shape} and {len(names)}")
    order = np.argsort(np.abs(numbers).mean(0))[-most:]
    figure, axes = subplots(size=(7.2, 1.2 + 0.42 * len(order)))
    ax = axes[0, 0]
    for row, feature in enumerate(order):
        part, ranks = numbers[:, feature], _ranks(values[:, feature])
        dots = ax.scatter(part, row + _spread(part), c=ranks, cmap=low_to_high(), vmin=0.0, vmax=1.0, s=9, linewidths=0)
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
    dots = ax.scatter(as_array(feature), as_array(part), c=as_array(other), cmap=low_to_high(), s=14, linewidths=0)
    ax.axhline(0, color=FAINT, linewidth=1)
    ax.set(xlabel=name, ylabel=y_label)
    figure.colorbar(dots, ax=ax, label=other_name).outline.set_visible(False)
    return figure


def low_to_high() -> "Colormap":
    """From blue to orange: dots stand on the page itself, and all of them show on white and on black."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("low to high", [PALETTE[0], PALETTE[3], PALETTE[1]])


def over_images(images: object, parts: object, titles: Sequence[str]) -> "Figure":
    """Each image above a pale copy of it that its parts colour: red adds, blue takes away, one scale for all.

    Images are (count, height, width), or (count, channels, height, width) in [0, 1].
    """
    pictures, numbers = _with_channels(images), as_array(parts)
    _matched(pictures, numbers, len(titles))
    tall = 1.5 * pictures.shape[2] / pictures.shape[3]
    figure, axes = subplots(2, len(pictures), size=(1.5 * len(pictures) + 0.6, 2 * tall + 0.4))
    most = _reach(numbers)
    for column, (picture, part, title) in enumerate(zip(pictures, numbers, titles, strict=True)):
        show_image(axes[0, column], picture)
        axes[0, column].set_title(title, fontsize=9)
        _colour(axes[1, column], picture, part, most)
    _finish(figure, axes, axes[1], numbers)
    return figure


def maps_of_classes(images: object, parts: object, titles: Sequence[Sequence[str]]) -> "Figure":
    """A row for each image: the image, then a pale copy of it for each class, coloured by the parts.

    Parts are (count, classes, height, width); titles are for each row the image's and those of its classes.
    """
    pictures, numbers = _with_channels(images), as_array(parts)
    _matched(pictures, numbers[:, 0], len(titles))
    rows, classes = numbers.shape[:2]
    if any(len(row) != classes + 1 for row in titles):
        raise ValueError(f"each row needs {classes + 1} titles, the image's and the classes'; got {list(titles)}")
    tall = 1.75 * pictures.shape[2] / pictures.shape[3]
    figure, axes = subplots(rows, classes + 1, size=(1.75 * (classes + 1) + 0.8, (tall + 0.25) * rows + 0.1))
    most = _reach(numbers)
    for row, picture in enumerate(pictures):
        show_image(axes[row, 0], picture)
        for place in range(classes):
            _colour(axes[row, place + 1], picture, numbers[row, place], most)
        for ax, title in zip(axes[row], titles[row], strict=True):
            ax.set_title(title, fontsize=9)
    _finish(figure, axes, axes, numbers)
    return figure


def _with_channels(images: object) -> "NDArray[np.float64]":
    pictures = as_array(images)
    if pictures.ndim not in (3, 4):
        raise ValueError(f"images must be (count, height, width) or with channels; got {pictures.shape}")
    return pictures[:, None] if pictures.ndim == 3 else pictures


def _matched(pictures: "NDArray[np.float64]", numbers: "NDArray[np.float64]", titles: int) -> None:
    if pictures[:, 0].shape != numbers.shape or len(pictures) != titles:
        raise ValueError(f"images, parts and titles must match; got {pictures.shape}, {numbers.shape}, {titles}")


def _reach(numbers: "NDArray[np.float64]") -> float:
    """Where the scale of colours ends: one part in a hundred may be beyond, else a single one would pale the rest."""
    return float(np.quantile(np.abs(numbers), 0.99, method="higher")) or float(np.abs(numbers).max()) or 1.0


def _colour(ax: "Axes", picture: "NDArray[np.float64]", part: "NDArray[np.float64]", most: float) -> None:
    """The colours of the parts on the image as on paper: a dark one is turned to its negative, so that they show."""
    from matplotlib import colormaps

    grey = np.clip(picture.mean(0), 0.0, 1.0)
    paper = 0.6 + 0.4 * (grey if grey.mean() > 0.5 else 1 - grey)
    ax.imshow(colormaps[DIVERGING](0.5 + 0.5 * np.clip(part / most, -1.0, 1.0))[..., :3] * paper[..., None])


def _finish(figure: "Figure", axes: "NDArray[Any]", beside: "NDArray[Any]", numbers: "NDArray[np.float64]") -> None:
    """No ticks, and the scale of colours beside the maps; it has ends where some parts are beyond it."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    for ax in axes.flat:
        plain(ax)
    most = _reach(numbers)
    scale = ScalarMappable(Normalize(-most, most), DIVERGING)
    ends = "both" if np.abs(numbers).max() > most else "neither"
    bar = figure.colorbar(scale, ax=list(beside.flat), fraction=0.03, pad=0.02, aspect=18, shrink=0.9, extend=ends)
    bar.outline.set_visible(False)
    bar.set_label("part", fontsize=9)
    bar.ax.tick_params(labelsize=8)


def _ranks(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """From 0 for the lowest value to 1 for the highest, equal ones alike; a half where all are."""
    different, ranks = np.unique(values, return_inverse=True)
    return ranks / (len(different) - 1) if len(different) > 1 else np.full(len(values), 0.5)


def _spread(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Heights that part dots which would lie upon each other: the more there are at a place, the higher the pile."""
    span = float(np.ptp(values)) or 1.0
    bins = np.floor((values - values.min()) / span * 60).astype(int)
    heights = np.zeros(len(values))
    for place in np.unique(bins):
        here = np.flatnonzero(bins == place)
        heights[here] = (np.arange(len(here)) + 1) // 2 * np.where(np.arange(len(here)) % 2, 1, -1)
    return heights * (0.4 / max(1.0, float(np.abs(heights).max())))
