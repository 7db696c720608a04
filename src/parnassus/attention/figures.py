"""Figures of word predictions and word alignments."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from parnassus.report.style import PALETTE, SEQUENTIAL, as_array, subplots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MIN_LABELLED_WIDTH = 0.09  # narrower bars have no label


def plot_mask_predictions(
    words: Sequence[str], predictions: Sequence[Sequence[str]], probabilities: object, is_correct: object
) -> "Figure":
    """One row per masked word, with stacked bars for the probabilities of the predictions.

    `probabilities` and `is_correct` have the shape (word, prediction); correct predictions have another colour.
    """
    widths, correct = as_array(probabilities), as_array(is_correct)
    if not len(words) == len(predictions) == len(widths) == len(correct):
        raise ValueError(
            f"each masked word needs predictions; got {len(words)} words, {len(predictions)} lists of predictions, "
            f"{len(widths)} of probabilities, {len(correct)} of is_correct"
        )
    figure, axes = subplots(size=(7.2, 0.9 + 0.42 * len(words)))
    ax = axes[0, 0]
    for row, names in enumerate(predictions):
        left = 0.0
        for name, width, hit in zip(names, widths[row].tolist(), correct[row].tolist(), strict=True):
            ax.barh(row, width, left=left, height=0.7, color=PALETTE[1 if hit else 0], edgecolor="white", linewidth=0.8)
            if width > MIN_LABELLED_WIDTH:
                ax.text(left + width / 2, row, name, ha="center", va="center", color="white", fontsize=9)
            left += width
    ax.set_yticks(range(len(words)), words)
    ax.invert_yaxis()
    ax.set(xlabel="probability", xlim=(0.0, 1.0))
    ax.grid(visible=False, axis="y")
    return figure


def plot_alignment(weights: object, columns: Sequence[str], rows: Sequence[str]) -> "Figure":
    """Attention weights in [0, 1] as a heat map, source words above, target words at the left."""
    values = as_array(weights)
    if values.shape != (len(rows), len(columns)):
        raise ValueError(f"weights must be rows × columns, {len(rows)} × {len(columns)}; got {values.shape}")
    figure, axes = subplots(size=(1.6 + 0.42 * len(columns), 1.4 + 0.36 * len(rows)))
    ax = axes[0, 0]
    ax.imshow(values, cmap=SEQUENTIAL, vmin=0.0, vmax=1.0, aspect="auto")
    ax.xaxis.tick_top()
    ax.set_xticks(range(len(columns)), columns, rotation=45, ha="left", rotation_mode="anchor")
    ax.set_yticks(range(len(rows)), rows)
    ax.grid(visible=False)
    return figure
