"""Waterfall plots: bars end at the sum, numbers and errors are written next to them."""

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation

from parnassus.shapley.figures.waterfall import format_signed, plot_waterfall


def bars(ax: Axes) -> list[Rectangle]:
    return [patch for patch in ax.patches if isinstance(patch, Rectangle)]


def test_waterfall_ends_at_the_sum() -> None:
    parts = torch.tensor([3.0, -1.0, 0.5])
    (ax,) = plot_waterfall(10.0, parts, ["a", "b", "c"]).axes
    ends = sorted(bar.get_x() + bar.get_width() for bar in bars(ax))
    assert ends[-1] == pytest.approx(12.5)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["c", "b", "a"]
    assert {"10", "12.5", "+3", "-1"} <= {text.get_text() for text in ax.texts}


def test_small_attributions_become_one_bar() -> None:
    (ax,) = plot_waterfall(
        0.0, np.arange(1.0, 21.0), [str(n) for n in range(20)], errors=np.ones(20), max_display=5
    ).axes
    assert ax.get_yticklabels()[0].get_text() == "15 others"
    assert sum(bar.get_width() for bar in bars(ax)) == pytest.approx(210.0)


def test_labels_are_outside_error_bars_and_infinite_errors_are_shown() -> None:
    (ax,) = plot_waterfall(0.0, [1.0, -2.0, 4.0], ["a", "b", "c"], errors=[0.5, np.inf, 3.0]).axes
    positions = {text.get_text(): text.xy[0] for text in ax.texts if isinstance(text, Annotation)}
    assert (positions["+1"], positions["+4"]) == (1.5, 6.0)
    assert positions["-2 ± ∞"] == -1.0


def test_format_signed_rounds_to_zero_and_separates_thousands() -> None:
    assert [format_signed(value, 5.0) for value in (0.1, -2.0, 5e-13, 0.0)] == ["+0.1", "-2", "0", "0"]
    assert format_signed(-12_345.6, 1e5) == "-12,346"


def test_each_attribution_needs_a_name() -> None:
    with pytest.raises(ValueError, match="2 names for 3 attributions"):
        plot_waterfall(0.0, torch.ones(3), ["a", "b"])
