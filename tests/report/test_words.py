"""Words in pictures: a bar for each guess, as wide as it is likely; a square for each pair of words."""

import numpy as np
import pytest
import torch
from matplotlib.patches import Rectangle

from parnassus.report.words import alignment, guessed_words


def test_bars_stand_side_by_side_and_only_wide_ones_are_named() -> None:
    shares, right = torch.tensor([[0.5, 0.25, 0.05]]), torch.tensor([[False, True, False]])
    (ax,) = guessed_words(["cat"], [["dog", "cat", "cow"]], shares, right).axes
    bars = [bar for bar in ax.patches if isinstance(bar, Rectangle)]
    assert [bar.get_x() for bar in bars] == pytest.approx([0.0, 0.5, 0.75])
    assert [bar.get_width() for bar in bars] == pytest.approx([0.5, 0.25, 0.05])
    assert [text.get_text() for text in ax.texts] == ["dog", "cat"]
    assert bars[0].get_facecolor() != bars[1].get_facecolor()
    assert bars[0].get_facecolor() == bars[2].get_facecolor()


def test_each_gap_needs_guesses() -> None:
    with pytest.raises(ValueError, match="got 2 gaps, 1 lists"):
        guessed_words(["a", "b"], [["c"]], torch.ones(1, 1), torch.ones(1, 1))


def test_an_alignment_shows_its_weights_between_its_words() -> None:
    weights = torch.tensor([[0.1, 0.9, 0.0], [0.3, 0.3, 0.4]])
    (ax,) = alignment(weights, ["der", "hund", "end"], ["dog", "end"]).axes
    assert np.array_equal(np.asarray(ax.images[0].get_array()), weights.numpy())
    assert [label.get_text() for label in ax.get_xticklabels()] == ["der", "hund", "end"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["dog", "end"]
    with pytest.raises(ValueError, match="rows × columns, 1 × 3"):
        alignment(weights, ["der", "hund", "end"], ["dog"])
