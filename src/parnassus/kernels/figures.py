"""Figures of Gaussian-process predictions and kernel spectra."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from parnassus.kernels.gaussian_processes.calibration import CalibrationCurve
from parnassus.report.plots import image_grid
from parnassus.report.style import FAINT, as_array, colours, subplots

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_calibration(found: Mapping[str, CalibrationCurve], *, x_label: str, y_label: str) -> "Figure":
    """Calibration curves with 95 % intervals; the diagonal is perfect calibration."""
    figure, axes = subplots(size=(4.6, 4.2))
    ax = axes[0, 0]
    ax.plot([0, 1], [0, 1], color=FAINT, linestyle="--", linewidth=1)
    for (name, curve), colour in zip(found.items(), colours(len(found)), strict=True):
        low, high = (as_array(end) for end in curve.interval())
        predicted, observed = as_array(curve.predicted), as_array(curve.observed)
        ax.vlines(predicted, low, high, color=colour, linewidth=1.2, alpha=0.6)
        ax.plot(predicted, observed, "o", color=colour, markersize=4, label=name)
    ax.set(xlabel=x_label, ylabel=y_label, xlim=(0, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.legend(loc="upper left")
    return figure


def plot_most_and_least_confident(
    images: object, probabilities: object, labels: object, classes: Sequence[str], *, num_each: int | None = None
) -> "Figure":
    """Images with the largest and smallest probability of the predicted class, titled with both.

    The true class follows in brackets where the prediction is wrong. By default ten images per row, or five if class
    names are long.
    """
    is_short = max(map(len, classes)) <= 3
    num_each = num_each or (10 if is_short else 5)
    scores, truth = as_array(probabilities), as_array(labels).astype(int)
    if scores.shape != (len(truth), len(classes)) or len(as_array(images)) != len(truth):
        raise ValueError(f"need probabilities (images, classes) and a label each; got {scores.shape}, {len(truth)}")
    confidence, predicted = scores.max(1), scores.argmax(1)
    order = np.argsort(-confidence, kind="stable")
    rows = np.concatenate([order[:num_each], order[-num_each:]])
    titles = [
        f"{classes[predicted[row]]}: {confidence[row]:.2f}"
        + ("" if predicted[row] == truth[row] else f" ({classes[truth[row]]})")
        for row in rows
    ]
    return image_grid(
        as_array(images)[rows],
        columns=len(order[:num_each]),
        titles=titles,
        row_labels=["most confident", "least confident"],
        scale=1.0 if is_short else 1.6,
    )


def plot_predictions(truth: object, mean: object, half_width: object) -> "Figure":
    """Predicted against true values, with error bars of ± `half_width`."""
    figure, axes = subplots(size=(4.8, 4.2))
    ax = axes[0, 0]
    true = as_array(truth)
    ax.errorbar(true, as_array(mean), as_array(half_width), fmt="o", markersize=3, elinewidth=0.6, alpha=0.6)
    ends = [true.min(), true.max()]
    ax.plot(ends, ends, color=FAINT, linestyle="--", linewidth=1)
    ax.set(xlabel="target, standardised", ylabel="predicted")
    return figure


def plot_spectra(
    eigenvalues: Mapping[str, object], times: object, remaining: Mapping[str, tuple[object, object]]
) -> "Figure":
    """Eigenvalues of several kernels, and the unlearned fractions of targets and of shuffled targets over time."""
    figure, axes = subplots(1, 2, size=(9.0, 3.8))
    for (name, values), colour in zip(eigenvalues.items(), colours(len(eigenvalues)), strict=True):
        spectrum = as_array(values)
        positive = spectrum[spectrum > 1e-12 * spectrum[0]]
        axes[0, 0].loglog(np.arange(1, len(positive) + 1), positive, color=colour, label=name)
        for fraction, style, suffix in zip(remaining[name], ("-", ":"), ("", ", shuffled targets"), strict=True):
            axes[0, 1].semilogx(as_array(times), as_array(fraction), style, color=colour, label=name + suffix)
    axes[0, 0].set(xlabel="i", ylabel="eigenvalue λ_i")
    axes[0, 1].set(xlabel="time of gradient flow × mean eigenvalue", ylabel="‖y − u(t)‖² / ‖y‖²", ylim=(0, 1.02))
    axes[0, 0].legend()
    axes[0, 1].legend(loc="lower left", fontsize=8)
    return figure


def plot_eigenvector_images(eigenvectors: object, images: object, *, count: int = 6, num_each: int = 5) -> "Figure":
    """Images with the lowest (left half) and highest (right half) entries of the first `count` eigenvectors."""
    vectors, pixels = as_array(eigenvectors), as_array(images)
    if len(vectors) != len(pixels):
        raise ValueError(f"eigenvectors need one entry per image; got {len(vectors)} entries, {len(pixels)} images")
    orders = [np.argsort(vector) for vector in vectors.T[:count]]
    rows = np.concatenate([np.concatenate([order[:num_each], order[-num_each:]]) for order in orders])
    return image_grid(pixels[rows], columns=2 * num_each, row_labels=[f"u_{index + 1}" for index in range(len(orders))])
