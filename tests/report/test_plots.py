"""Figures contain the given numbers."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from parnassus.report import (
    bar_chart,
    confusion_matrix,
    curves,
    heatmap,
    histograms,
    image_grid,
    save_figure,
    scatter,
    show_image,
    subplots,
    surface,
)

GENERATOR = torch.Generator().manual_seed(0)
POINTS = torch.randn(40, 2, generator=GENERATOR)


@pytest.mark.parametrize("shape", [(8, 8), (4, 8, 8), (4, 2, 8, 8), (4, 8, 8, 3), (1, 4, 1, 8, 8)])
def test_invalid_image_shapes_raise_value_error(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"images must be \(n, 1 or 3, height, width\); got \(") as error:
        image_grid(torch.zeros(shape))
    assert str(shape) in str(error.value)


def displayed_image(figure: Figure) -> "np.typing.NDArray[np.float64]":
    (image,) = figure.axes[0].images
    return np.asarray(image.get_array())


def legend_labels(ax: Axes) -> list[str]:
    legend = ax.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def test_images_are_placed_row_by_row_with_transparent_gaps() -> None:
    images = torch.arange(6).view(6, 1, 1, 1).expand(6, 1, 14, 14) / 10
    displayed = displayed_image(image_grid(images, columns=3))
    assert displayed.shape == (2 * 15, 3 * 15, 4)
    for index in range(6):
        top, left = index // 3 * 15, index % 3 * 15
        assert displayed[top : top + 14, left : left + 14, :3] == pytest.approx(index / 10)
    assert displayed[14, :, 3].max() == 0.0
    assert displayed[:, 14, 3].max() == 0.0


def test_colours_and_clipping() -> None:
    image = torch.tensor([2.0, 0.25, -1.0]).view(1, 3, 1, 1).expand(1, 3, 4, 4)
    assert displayed_image(image_grid(image))[0, 0].tolist() == [1.0, 0.25, 0.0, 1.0]


def test_titles_of_columns_and_of_images() -> None:
    images = torch.zeros(6, 1, 8, 8)
    by_column = image_grid(images, columns=3, titles=["a", "b", "c"], row_labels=["first", "second"])
    assert [label.get_text() for label in by_column.axes[0].get_xticklabels()] == ["a", "b", "c"]
    assert [label.get_text() for label in by_column.axes[0].get_yticklabels()] == ["first", "second"]
    by_image = image_grid(images, columns=3, titles=list("abcdef"))
    assert [text.get_text() for text in by_image.axes[0].texts] == list("abcdef")


def test_single_image_is_unchanged() -> None:
    _, axes = subplots()
    show_image(axes[0, 0], torch.full((1, 2, 2), 0.5))
    (image,) = axes[0, 0].images
    assert np.asarray(image.get_array()).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert image.get_clim() == (0.0, 1.0)


def test_curves_have_labels_scale_bands_and_marks() -> None:
    figure = curves(
        {"one": (torch.arange(1, 4), torch.tensor([1.0, 10.0, 100.0])), "two": ([1, 2], [3, 4])},
        x_label="steps",
        y_label="loss",
        log_y=True,
        bands={"one": ([0.5, 5, 50], [2, 20, 200])},
        marks={"warm": 2.0},
    )
    (ax,) = figure.axes
    assert ax.get_yscale() == "log"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("steps", "loss")
    assert ax.lines[0].get_ydata() == pytest.approx([1.0, 10.0, 100.0])
    assert legend_labels(ax) == ["one", "two"]
    assert [text.get_text() for text in ax.texts] == ["warm"]
    assert len(ax.collections) == 1


def test_single_curve_has_no_legend() -> None:
    assert legend_labels(curves({"one": ([1], [1])}, x_label="", y_label="").axes[0]) == []


def test_points_are_coloured_by_class() -> None:
    figure = scatter(POINTS, labels=torch.arange(40) % 3, classes=("cat", "dog"), lines={"border": ([0, 1], [0, 1])})
    (ax,) = figure.axes
    assert legend_labels(ax) == ["cat", "dog", "2", "border"]
    assert sum(np.asarray(each.get_offsets()).shape[0] for each in ax.collections) == 40


def test_diverging_heatmap_is_centred_on_zero() -> None:
    (image,) = heatmap(torch.tensor([[-1.0, 4.0]]), diverging=True).axes[0].images
    assert image.get_clim() == (-4.0, 4.0)


def test_heatmap_shows_numbers_and_labels() -> None:
    ax = heatmap(torch.tensor([[1.25, 2.0]]), annotate=True, row_labels=["r"], column_labels=["a", "b"]).axes[0]
    assert [text.get_text() for text in ax.texts] == ["1.25", "2"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b"]


def test_bars_are_ordered_from_top_with_values() -> None:
    ax = bar_chart({"first": 1.0, "second": 2.5}, reference=("goal", 2.0)).axes[0]
    assert [patch.get_width() for patch in ax.patches if isinstance(patch, Rectangle)] == [1.0, 2.5]
    assert ax.yaxis_inverted()
    assert [text.get_text() for text in ax.texts] == ["1", "2.5"]


def test_histograms_share_their_bins_and_have_area_one() -> None:
    ax = histograms({"a": POINTS, "b": 2 * POINTS}, x_label="x", bins=10).axes[0]
    bars = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert len(bars) == 20
    assert [patch.get_x() for patch in bars[:10]] == [patch.get_x() for patch in bars[10:]]
    assert sum(patch.get_width() * patch.get_height() for patch in bars[:10]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: surface(torch.rand(5, 6, generator=GENERATOR), extent=(0, 1, 0, 2), points=torch.rand(3, 3)),
        lambda: heatmap(torch.rand(3, 3, generator=GENERATOR), extent=(0, 1, 0, 1)),
        lambda: image_grid(torch.rand(5, 3, 9, 7, generator=GENERATOR), titles=list("abcde"), scale=0.5),
        lambda: scatter(POINTS.numpy(), x_label="x₁", y_label="σ̂² ≤ ‖x‖"),
    ],
)
def test_figures_are_saved(draw: Callable[[], Figure], tmp_path: Path) -> None:
    save_figure(draw(), tmp_path / "figure")
    assert (tmp_path / "figure.svg").stat().st_size > 500
    assert (tmp_path / "figure.png").stat().st_size > 500


def test_confusion_matrix_has_true_classes_in_rows() -> None:
    figure = confusion_matrix([0, 0, 1, 2], [0, 1, 1, 0], ["a", "b", "c"])
    counts = np.asarray(figure.axes[0].images[0].get_array())
    assert counts.tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 0]]
