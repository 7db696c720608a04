"""Figures of diffusion models: chains of images with arrows, grids of samples."""

import numpy as np
import pytest
import torch
from matplotlib.text import Annotation

from parnassus.diffusion.figures import plot_columns, plot_image_chain, plot_nearest, plot_samples


def test_chain_shows_names_and_two_arrows_between_neighbours() -> None:
    figure = plot_image_chain(torch.rand(4, 1, 5, 5), names=["a", "b", "c", "d"], forward="q", backward="p")
    (ax,) = figure.axes
    arrows = [text for text in ax.texts if isinstance(text, Annotation)]
    labels = [text.get_text() for text in ax.texts if not isinstance(text, Annotation)]
    assert len(ax.child_axes) == 4
    assert sorted(labels) == ["a", "b", "c", "d", "p", "q"]
    directions = [arrow.xy[0] - arrow.get_position()[0] for arrow in arrows]
    assert sum(direction > 0 for direction in directions) == sum(direction < 0 for direction in directions) == 3


def test_invalid_chains_raise_value_error() -> None:
    with pytest.raises(ValueError, match="images must have shape"):
        plot_image_chain(torch.rand(1, 1, 5, 5), names=["a"], forward="", backward="")
    with pytest.raises(ValueError, match="and 1 names"):
        plot_image_chain(torch.rand(2, 1, 5, 5), names=["a"], forward="", backward="")


def test_samples_have_one_column_per_class_or_ten_columns() -> None:
    by_class, without_classes = (plot_samples(torch.zeros(30, 1, 4, 4), classes) for classes in (("a", "b", "c"), ()))
    assert [label.get_text() for label in by_class.axes[0].get_xticklabels()] == ["a", "b", "c"]
    shapes = [np.asarray(figure.axes[0].images[0].get_array()).shape[:2] for figure in (by_class, without_classes)]
    assert shapes == [(40, 15), (15, 50)]  # images of 4 × 4 with gaps of 1: 8 rows of 3, 3 rows of 10


def test_nearest_images_are_below_the_samples() -> None:
    training = torch.stack([torch.full((1, 2, 2), value) for value in (-1.0, 0.0, 1.0)])
    figure = plot_nearest(training[[2, 0]] * 0.9, training)
    shown = np.asarray(figure.axes[0].images[0].get_array())[..., 0]
    assert [shown[row, column] for row in (0, 3) for column in (0, 3)] == pytest.approx([0.95, 0.05, 1.0, 0.0])


def test_columns_start_at_zero_with_labelled_ticks() -> None:
    rows = [{"steps": 2, "share": 0.5, "far": 3.0}, {"steps": 20, "share": 0.75, "far": 1.0}]
    figure = plot_columns(rows, {"shares": ("share",), "distance": ("far",)}, over="steps")
    assert [[float(y) for y in np.asarray(ax.lines[0].get_ydata())] for ax in figure.axes] == [[0.5, 0.75], [3.0, 1.0]]
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["2", "20"]
    assert [ax.get_ylim()[0] for ax in figure.axes] == [0.0, 0.0]
