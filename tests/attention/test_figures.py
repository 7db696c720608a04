"""Figures of masked predictions and alignments."""

import numpy as np
import pytest
import torch
from matplotlib.patches import Rectangle

from parnassus.attention.figures import plot_alignment, plot_mask_predictions


def test_bars_are_stacked_and_only_wide_bars_are_labelled() -> None:
    probabilities, is_correct = torch.tensor([[0.5, 0.25, 0.05]]), torch.tensor([[False, True, False]])
    (ax,) = plot_mask_predictions(["cat"], [["dog", "cat", "cow"]], probabilities, is_correct).axes
    bars = [bar for bar in ax.patches if isinstance(bar, Rectangle)]
    assert [bar.get_x() for bar in bars] == pytest.approx([0.0, 0.5, 0.75])
    assert [bar.get_width() for bar in bars] == pytest.approx([0.5, 0.25, 0.05])
    assert [text.get_text() for text in ax.texts] == ["dog", "cat"]
    assert bars[0].get_facecolor() != bars[1].get_facecolor()
    assert bars[0].get_facecolor() == bars[2].get_facecolor()


def test_missing_predictions_raise_value_error() -> None:
    with pytest.raises(ValueError, match="got 2 words, 1 lists"):
        plot_mask_predictions(["a", "b"], [["c"]], torch.ones(1, 1), torch.ones(1, 1))


def test_plot_alignment_shows_weights_and_words() -> None:
    weights = torch.tensor([[0.1, 0.9, 0.0], [0.3, 0.3, 0.4]])
    (ax,) = plot_alignment(weights, ["der", "hund", "end"], ["dog", "end"]).axes
    assert np.array_equal(np.asarray(ax.images[0].get_array()), weights.numpy())
    assert [label.get_text() for label in ax.get_xticklabels()] == ["der", "hund", "end"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["dog", "end"]
    with pytest.raises(ValueError, match="rows × columns, 1 × 3"):
        plot_alignment(weights, ["der", "hund", "end"], ["dog"])
