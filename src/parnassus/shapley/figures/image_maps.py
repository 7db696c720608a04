"""Attributions of pixels as colours over their images."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from parnassus.report.plots import show_image
from parnassus.report.style import DIVERGING, as_array, remove_frame, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray


def plot_image_attributions(images: object, attributions: object, titles: Sequence[str]) -> "Figure":
    """Each image above a pale copy coloured by its attributions: red positive, blue negative, on one scale.

    Images are (count, height, width), or (count, channels, height, width) in [0, 1].
    """
    pixels, values = _add_channels(images), as_array(attributions)
    _check_matching_shapes(pixels, values, len(titles))
    height = 1.5 * pixels.shape[2] / pixels.shape[3]
    figure, axes = subplots(2, len(pixels), size=(1.5 * len(pixels) + 0.6, 2 * height + 0.4))
    limit = _colour_limit(values)
    for column, (image, value, title) in enumerate(zip(pixels, values, titles, strict=True)):
        show_image(axes[0, column], image)
        axes[0, column].set_title(title, fontsize=9)
        _draw_map(axes[1, column], image, value, limit)
    _draw_colorbar(figure, axes, axes[1], values)
    return figure


def plot_class_attributions(images: object, attributions: object, titles: Sequence[Sequence[str]]) -> "Figure":
    """One row per image: the image, then for each class a pale copy coloured by its attributions.

    Attributions are (count, classes, height, width); titles are, per row, the image's and those of its classes.
    """
    pixels, values = _add_channels(images), as_array(attributions)
    _check_matching_shapes(pixels, values[:, 0], len(titles))
    rows, classes = values.shape[:2]
    if any(len(row) != classes + 1 for row in titles):
        raise ValueError(f"each row needs {classes + 1} titles, the image's and the classes'; got {list(titles)}")
    height = 1.75 * pixels.shape[2] / pixels.shape[3]
    figure, axes = subplots(rows, classes + 1, size=(1.75 * (classes + 1) + 0.8, (height + 0.25) * rows + 0.1))
    limit = _colour_limit(values)
    for row, image in enumerate(pixels):
        show_image(axes[row, 0], image)
        for index in range(classes):
            _draw_map(axes[row, index + 1], image, values[row, index], limit)
        for ax, title in zip(axes[row], titles[row], strict=True):
            ax.set_title(title, fontsize=9)
    _draw_colorbar(figure, axes, axes, values)
    return figure


def _add_channels(images: object) -> "NDArray[np.float64]":
    pixels = as_array(images)
    if pixels.ndim not in (3, 4):
        raise ValueError(f"images must be (count, height, width) or with channels; got {pixels.shape}")
    return pixels[:, None] if pixels.ndim == 3 else pixels


def _check_matching_shapes(pixels: "NDArray[np.float64]", values: "NDArray[np.float64]", titles: int) -> None:
    if pixels[:, 0].shape != values.shape or len(pixels) != titles:
        raise ValueError(f"images, attributions and titles must match; got {pixels.shape}, {values.shape}, {titles}")


def _colour_limit(values: "NDArray[np.float64]") -> float:
    """End of the colour scale: the 99th percentile, so that single pixels do not make the others pale."""
    return float(np.quantile(np.abs(values), 0.99, method="higher")) or float(np.abs(values).max()) or 1.0


def _draw_map(ax: "Axes", image: "NDArray[np.float64]", values: "NDArray[np.float64]", limit: float) -> None:
    """Colours multiplied by a pale grey copy of the image; dark images are inverted so that colours are visible."""
    from matplotlib import colormaps

    grey = np.clip(image.mean(0), 0.0, 1.0)
    paper = 0.6 + 0.4 * (grey if grey.mean() > 0.5 else 1 - grey)
    ax.imshow(colormaps[DIVERGING](0.5 + 0.5 * np.clip(values / limit, -1.0, 1.0))[..., :3] * paper[..., None])


def _draw_colorbar(
    figure: "Figure", axes: "NDArray[Any]", beside: "NDArray[Any]", values: "NDArray[np.float64]"
) -> None:
    """Remove frames and draw the colour scale next to the maps, with pointed ends if values exceed it."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    for ax in axes.flat:
        remove_frame(ax)
    limit = _colour_limit(values)
    scale = ScalarMappable(Normalize(-limit, limit), DIVERGING)
    ends = "both" if np.abs(values).max() > limit else "neither"
    bar = figure.colorbar(scale, ax=list(beside.flat), fraction=0.03, pad=0.02, aspect=18, shrink=0.9, extend=ends)
    bar.outline.set_visible(False)
    bar.set_label("attribution", fontsize=9)
    bar.ax.tick_params(labelsize=8)
