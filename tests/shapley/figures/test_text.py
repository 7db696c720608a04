"""Text plots: coloured words in lines, and the width of a text."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.patches import FancyBboxPatch

from parnassus.shapley.figures.text import plot_text, text_width


def test_words_are_coloured_by_attribution_and_wrapped() -> None:
    words = ["not ", "good", ","] * 20
    (ax,) = plot_text(words, np.tile([-2.0, 1.0, 0.0], 20), title="positive", max_width=4.0).axes
    texts = {text.get_text() for text in ax.texts}
    assert {"positive", "not", "good", ",", "-2", "+1", "lowers  −2", "+2  raises"} <= texts
    backgrounds = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)][: len(words)]
    assert [patch.get_alpha() for patch in backgrounds[:3]] == pytest.approx([0.6, 0.3, 0.0])
    assert all(patch.get_x() + patch.get_width() <= 4.0 for patch in backgrounds)
    ends = [(patch.get_y(), patch.get_x(), patch.get_x() + patch.get_width()) for patch in backgrounds]
    for (line, _, right), (next_line, left, _) in pairwise(ends):
        assert next_line > line or left > right


def test_text_width_depends_on_letters() -> None:
    assert text_width("WWW", 11.0) > 1.5 * text_width("iii", 11.0) > 0


def test_each_word_needs_an_attribution() -> None:
    with pytest.raises(ValueError, match="2 words, 1 attributions"):
        plot_text(["a", "b"], [1.0])
    with pytest.raises(ValueError, match="must not be empty"):
        plot_text([], [])
