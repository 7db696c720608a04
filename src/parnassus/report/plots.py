"""Plots of images, curves, points, matrices and surfaces.

Every function takes tensors or arrays and returns a matplotlib Figure.
"""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10, sqrt
from typing import TYPE_CHECKING

import numpy as np

from parnassus.report.formatting import format_number
from parnassus.report.formulas import to_mathtext
from parnassus.report.style import DIVERGING, FAINT, INK, PALETTE, SEQUENTIAL, as_array, colours, remove_frame, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

MIN_SMOOTHED = 60  # minimum number of points for smoothing a noisy line


def image_grid(
    images: object,
    *,
    columns: int | None = None,
    titles: Sequence[str] | None = None,
    row_labels: Sequence[str] | None = None,
    scale: float = 1.0,
) -> "Figure":
    """Images (n, channels, height, width) with values in [0, 1], enlarged, row by row.

    There is one title per image or one per column.
    """
    pictures = as_array(images)
    if pictures.ndim != 4 or pictures.shape[1] not in (1, 3):
        raise ValueError(f"images must be (n, 1 or 3, height, width); got {pictures.shape}")
    count, _, height, width = pictures.shape
    columns = columns or ceil(sqrt(count))
    rows = ceil(count / columns)
    gap = max(1, height // 14)
    headroom = 0 if titles is None or len(titles) <= columns else max(2, height // 4)
    cell_height, cell_width = height + gap + headroom, width + gap
    mosaic = np.zeros((rows * cell_height, columns * cell_width, 4))  # transparent between the images
    for index, picture in enumerate(pictures):
        top, left = index // columns * cell_height + headroom, index % columns * cell_width
        mosaic[top : top + height, left : left + width, :3] = np.clip(picture.transpose(1, 2, 0), 0.0, 1.0)
        mosaic[top : top + height, left : left + width, 3] = 1.0
    inch = scale * max(0.45, min(1.1, 9.0 / columns)) / cell_width
    label_width = 0.2 + 0.105 * max(map(len, row_labels)) if row_labels else 0.0
    figure, axes = subplots(
        size=(columns * cell_width * inch + label_width, rows * cell_height * inch + 0.3 * bool(titles))
    )
    ax = axes[0, 0]
    remove_frame(ax)
    ax.imshow(mosaic)
    middle = (width - 1) / 2
    if titles is not None and not headroom:
        ax.xaxis.tick_top()
        positions = [column * cell_width + middle for column in range(len(titles))]
        ax.set_xticks(positions, [to_mathtext(title) for title in titles])
    elif titles is not None:
        for index, title in enumerate(titles):
            x, y = index % columns * cell_width + middle, index // columns * cell_height + headroom - 1
            ax.text(x, y, title, ha="center", va="bottom", fontsize=8)
    if row_labels is not None:
        positions = [row * cell_height + headroom + (height - 1) / 2 for row in range(len(row_labels))]
        ax.set_yticks(positions, [to_mathtext(label) for label in row_labels])
    ax.tick_params(length=0)
    return figure


def show_image(ax: "Axes", image: object) -> None:
    """One image (channels, height, width) on `ax`."""
    picture = np.clip(as_array(image).transpose(1, 2, 0), 0.0, 1.0)
    ax.imshow(picture.squeeze(-1) if picture.shape[-1] == 1 else picture, cmap="gray", vmin=0.0, vmax=1.0)


def curves(
    lines: Mapping[str, tuple[object, object]],
    *,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
    bands: Mapping[str, tuple[object, object]] | None = None,
    marks: Mapping[str, float] | None = None,
    smooth: bool = False,
) -> "Figure":
    """One line per name; `bands` shade (low, high) around a line, `marks` are vertical lines with labels.

    With `smooth`, long and noisy lines are drawn faintly, with their moving average.
    """
    figure, axes = subplots()
    ax = axes[0, 0]
    for (name, (x, y)), colour in zip(lines.items(), colours(len(lines)), strict=True):
        points, values = as_array(x), as_array(y)
        if smooth and len(points) >= MIN_SMOOTHED and is_noisy(values):
            ax.plot(points, values, color=colour, alpha=0.3, linewidth=1)
            mean = moving_average(np.log(values) if log_y else values, len(points) // 40)
            values = np.exp(mean) if log_y else mean
        ax.plot(points, values, label=name, color=colour, marker="o" if len(points) < 15 else None, markersize=4)
        if bands and name in bands:
            low, high = bands[name]
            ax.fill_between(points, as_array(low), as_array(high), color=colour, alpha=0.18, linewidth=0)
    for name, x in (marks or {}).items():
        ax.axvline(x, color=FAINT, linestyle="--", linewidth=1)
        ax.annotate(
            name, (x, 1), xycoords=("data", "axes fraction"), xytext=(0, 3), textcoords="offset points", ha="center"
        )  # above the axes
    ax.set(xlabel=x_label, ylabel=y_label, xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
    for axis, logarithmic in ((ax.xaxis, log_x), (ax.yaxis, log_y)):
        if logarithmic:
            label_log_ticks(axis)
    if not log_x and all(np.all(as_array(x) == np.round(as_array(x))) for x, _ in lines.values()):
        set_integer_ticks(ax.xaxis)
    if len(lines) > 4:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))  # a large legend would cover the lines
    elif len(lines) > 1:
        ax.legend()
    return figure


def set_integer_ticks(axis: "Axis") -> None:
    """Set ticks at integers only, with thousands separators."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}".replace("-", "−"))


def label_log_ticks(axis: "Axis") -> None:
    """Label the minor ticks of a logarithmic axis that spans less than a decade, all of them or those at 2 and 5."""
    low, high = sorted(axis.get_view_interval())
    if floor(log10(high)) - ceil(log10(low)) < 1:
        digits = "25" if high > 5 * low else "123456789"
        axis.set_major_formatter(lambda value, _: format_number(value, 6))
        axis.set_minor_formatter(lambda value, _: format_number(value, 6) if f"{value:e}"[0] in digits else "")


def is_noisy(values: "NDArray[np.float64]") -> bool:
    """Whether the differences of a line change their sign at more than a quarter of its points."""
    return bool(np.mean(np.diff(np.sign(np.diff(values))) != 0) > 0.25)


def moving_average(values: "NDArray[np.float64]", reach: int) -> "NDArray[np.float64]":
    """The mean over windows of half-width `reach`, which shrink at both ends."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    index = np.arange(len(values))
    reaches = np.minimum(reach, index)
    low, high = index - reaches, np.minimum(index + reaches + 1, len(values))
    return np.asarray((total[high] - total[low]) / (high - low))


def scatter(
    points: object,
    *,
    labels: object | None = None,
    classes: Sequence[str] = (),
    x_label: str = "",
    y_label: str = "",
    lines: Mapping[str, tuple[object, object]] | None = None,
) -> "Figure":
    """Points (n, 2), coloured by class if `labels` (n) are given; `lines` are drawn over them."""
    cloud = as_array(points)
    figure, axes = subplots(size=(5.6, 4.6))
    ax = axes[0, 0]
    kinds = np.zeros(len(cloud), dtype=int) if labels is None else as_array(labels).astype(int)
    size = float(np.clip(4000 / max(1, len(cloud)), 3, 30))
    for kind, colour in zip(np.unique(kinds), colours(len(np.unique(kinds))), strict=True):
        selected = cloud[kinds == kind]
        name = classes[kind] if kind < len(classes) else str(kind)
        ax.scatter(
            selected[:, 0], selected[:, 1], s=size, color=colour, label=name, alpha=0.75, linewidths=0, rasterized=True
        )
    for name, (x, y) in (lines or {}).items():
        ax.plot(as_array(x), as_array(y), color=INK, label=name)
    ax.set(xlabel=x_label, ylabel=y_label)
    if labels is not None or lines:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), markerscale=max(1.0, 5 / sqrt(size)))
    return figure


def heatmap(
    matrix: object,
    *,
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    x_label: str = "",
    y_label: str = "",
    extent: tuple[float, float, float, float] | None = None,
    diverging: bool = False,
    annotate: bool = False,
) -> "Figure":
    """A matrix as colours; `diverging` centres the scale on zero, `annotate` adds the values."""
    values = as_array(matrix)
    figure, axes = subplots(size=(5.8, 4.6))
    ax = axes[0, 0]
    limit = float(np.nanmax(np.abs(values))) if diverging else None
    picture = ax.imshow(
        values,
        cmap=DIVERGING if diverging else SEQUENTIAL,
        vmin=None if limit is None else -limit,
        vmax=limit,
        aspect="auto",
        extent=extent,
        origin="lower" if extent else "upper",
    )
    ax.grid(visible=False)
    ax.set(xlabel=x_label, ylabel=y_label)
    if column_labels is not None:
        ax.set_xticks(range(len(column_labels)), column_labels)
    if row_labels is not None:
        ax.set_yticks(range(len(row_labels)), row_labels)
    if annotate:
        for (row, column), value in np.ndenumerate(values):
            red, green, blue, _ = picture.cmap(picture.norm(value))
            dark = 0.3 * red + 0.6 * green + 0.1 * blue < 0.55
            ax.text(
                column,
                row,
                f"{value:.3g}",
                ha="center",
                va="center",
                color="#f8f8f8" if dark else "#111111",
                fontsize=8,
            )
    figure.colorbar(picture, ax=ax).outline.set_visible(False)
    return figure


def confusion_matrix(labels: object, predicted: object, classes: Sequence[str]) -> "Figure":
    """The number of examples of each true class (rows) with each predicted class (columns), given as indices."""
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (as_array(labels).astype(int), as_array(predicted).astype(int)), 1)
    return heatmap(
        counts,
        row_labels=classes,
        column_labels=classes,
        x_label="predicted class",
        y_label="true class",
        annotate=True,
    )


def bar_chart(
    values: Mapping[str, float], *, x_label: str = "", reference: tuple[str, float] | None = None
) -> "Figure":
    """Horizontal bars with their values; `reference` is a labelled vertical line."""
    figure, axes = subplots(size=(6.4, 0.8 + 0.36 * len(values)))
    ax = axes[0, 0]
    container = ax.barh(list(values), list(values.values()), color=PALETTE[0], height=0.65)
    ax.bar_label(container, fmt="{:.4g}", padding=3)
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.grid(visible=False, axis="y")
    ax.set_xlabel(x_label)
    if reference is not None:
        ax.axvline(reference[1], color=PALETTE[1], linestyle="--", linewidth=1.2, label=reference[0])
        ax.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2)  # above the axes, which the bars fill
    return figure


def histograms(values: Mapping[str, object], *, x_label: str, bins: int = 60) -> "Figure":
    """Density histograms of several samples on common bins."""
    samples = {name: as_array(sample).ravel() for name, sample in values.items()}
    edges = np.histogram_bin_edges(np.concatenate(list(samples.values())), bins=bins)
    figure, axes = subplots()
    ax = axes[0, 0]
    for (name, sample), colour in zip(samples.items(), colours(len(samples)), strict=True):
        ax.hist(sample, bins=edges, density=True, label=name, color=colour, alpha=0.25)
        ax.hist(sample, bins=edges, density=True, histtype="step", color=colour, linewidth=1.5)
    ax.set(xlabel=x_label, ylabel="density")
    if len(samples) > 1:
        ax.legend()
    return figure


def surface(heights: object, *, extent: tuple[float, float, float, float], points: object | None = None) -> "Figure":
    """A surface over the rectangle `extent` = (left, right, bottom, top), with `points` (n, 3)."""
    values = as_array(heights)
    x, y = np.meshgrid(
        np.linspace(extent[0], extent[1], values.shape[1]), np.linspace(extent[2], extent[3], values.shape[0])
    )
    figure, axes = subplots(size=(5.6, 4.6), three_d=True)
    ax = axes[0, 0]
    ax.plot_surface(x, y, values, cmap=SEQUENTIAL, alpha=0.85, linewidth=0, rasterized=True)
    if points is not None:
        spots = as_array(points)
        ax.scatter(spots[:, 0], spots[:, 1], spots[:, 2], color=PALETTE[1], s=40, depthshade=False)
    return figure
