"""Words in pictures: a bar for each guess, a square for each pair of words, a colour behind each word."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from matplotlib.patches import FancyBboxPatch, Rectangle

from parnassus.report.words import alignment, guessed_words, highlighted, inches


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


def test_words_are_coloured_by_their_parts_and_set_in_lines() -> None:
    words = ["not ", "good", ","] * 20
    (ax,) = highlighted(words, np.tile([-2.0, 1.0, 0.0], 20), title="cheerful", wide=4.0).axes
    texts = {text.get_text() for text in ax.texts}
    assert {"cheerful", "not", "good", ",", "-2", "+1", "lowers  −2", "+2  raises"} <= texts
    behind = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)][: len(words)]
    assert [patch.get_alpha() for patch in behind[:3]] == pytest.approx([0.6, 0.3, 0.0])
    assert all(patch.get_x() + patch.get_width() <= 4.0 for patch in behind)
    ends = [(patch.get_y(), patch.get_x(), patch.get_x() + patch.get_width()) for patch in behind]
    for (line, _, right), (next_line, left, _) in pairwise(ends):
        assert next_line > line or left > right


def test_wide_letters_take_more_room() -> None:
    assert inches("WWW", 11) > 1.5 * inches("iii", 11) > 0


def test_a_word_without_its_part_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="2 words, 1 parts"):
        highlighted(["a", "b"], [1.0])
    with pytest.raises(ValueError, match="there must be some"):
        highlighted([], [])
