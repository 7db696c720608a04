"""Figures: coordinates, titles, and order of images."""

import numpy as np
import pytest
import torch
from matplotlib.collections import LineCollection

from parnassus.kernels import CalibrationCurve
from parnassus.kernels.figures import (
    plot_calibration,
    plot_eigenvector_images,
    plot_most_and_least_confident,
    plot_predictions,
    plot_spectra,
)


def test_calibration_points_are_predicted_and_observed_fractions() -> None:
    fractions = torch.tensor([0.5, 0.9])
    curve = CalibrationCurve(fractions, fractions, torch.full((2,), 20.0), 0.0, 0.0)
    (ax,) = plot_calibration({"one": curve}, x_label="predicted", y_label="observed").axes
    assert np.asarray(ax.lines[1].get_xydata()).tolist() == pytest.approx(np.array([[0.5, 0.5], [0.9, 0.9]]))
    (bars,) = (artist for artist in ax.collections if isinstance(artist, LineCollection))
    lows = [float(np.asarray(bar)[0, 1]) for bar in bars.get_segments()]
    assert lows == pytest.approx(curve.interval()[0].tolist())
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["one"]


def test_most_confident_are_first_and_errors_show_the_true_class() -> None:
    probabilities = torch.tensor([[0.6, 0.4], [0.05, 0.95], [0.55, 0.45], [0.9, 0.1]])
    labels = torch.tensor([1, 1, 0, 0])
    figure = plot_most_and_least_confident(torch.zeros(4, 1, 3, 3), probabilities, labels, "ab", num_each=2)
    assert [text.get_text() for text in figure.axes[0].texts] == ["b: 0.95", "a: 0.90", "a: 0.60 (b)", "a: 0.55"]
    with pytest.raises(ValueError, match="need probabilities"):
        plot_most_and_least_confident(torch.zeros(3, 1, 3, 3), probabilities, labels, "ab")


def test_every_prediction_has_an_error_bar() -> None:
    truth = np.array([0.0, 1.0, 2.0])
    (ax,) = plot_predictions(truth, truth + 0.1, np.ones(3)).axes
    (bars,) = ax.collections
    assert isinstance(bars, LineCollection)
    assert len(bars.get_segments()) == 3


def test_eigenvalues_of_rounding_size_are_not_plotted() -> None:
    times = torch.logspace(-2, 2, 5)
    fraction = torch.linspace(1, 0, 5)
    first, second = plot_spectra({"K": torch.tensor([2.0, 0.5, 1e-17])}, times, {"K": (fraction, fraction)}).axes
    assert np.asarray(first.lines[0].get_ydata()).tolist() == [2.0, 0.5]
    assert len(second.lines) == 2


def test_images_are_sorted_by_their_entries() -> None:
    vector = torch.tensor([[0.3], [-0.8], [0.9], [0.0]])
    shades = torch.linspace(0, 1, 4).view(4, 1, 1, 1).expand(4, 1, 2, 2)
    (ax,) = plot_eigenvector_images(vector, shades, num_each=1).axes
    pixels = np.asarray(ax.images[0].get_array())
    assert pixels[0, 0, 0] == pytest.approx(1 / 3)  # the second image is lowest, the third highest
    assert pixels[0, 3, 0] == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="got 4 entries, 3 images"):
        plot_eigenvector_images(vector, shades[:3])
