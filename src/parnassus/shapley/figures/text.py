"""Text plot: words with coloured backgrounds by their attributions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from parnassus.report.style import as_array, remove_frame, subplots
from parnassus.shapley.figures.waterfall import NEGATIVE, POSITIVE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

MAX_ALPHA = 0.6
"""Strongest colour behind a word, on which text stays readable on light and dark pages."""
MIN_LABELLED = 0.1
"""Smallest attribution, relative to the largest, that is written below its word."""


def plot_text(words: Sequence[str], attributions: object, *, title: str = "", max_width: float = 8.0) -> "Figure":
    """A text whose words have backgrounds by their attributions, in two colours for positive and negative.

    Larger attributions are written below their words; below the text is the scale. Lines break at `max_width` inches.
    """
    values = as_array(attributions)
    if len(words) != len(values) or not len(words):
        raise ValueError(
            "each word needs its attribution, and words must not be empty; "
            f"got {len(words)} words, {len(values)} attributions"
        )
    limit = float(abs(values).max()) or 1.0
    names = [word.strip() for word in words]
    labels = [f"{value:+.2g}" if abs(value) >= MIN_LABELLED * limit else "" for value in values.tolist()]
    widths = [
        max(text_width(name, 11.0) + 0.12, text_width(label, 7.0)) for name, label in zip(names, labels, strict=True)
    ]
    positions, num_lines = _break_lines(widths, max_width)
    height = 0.5 * num_lines + 0.5 + 0.3 * bool(title)
    figure, axes = subplots(size=(max_width + 0.2, height + 0.1))
    ax = axes[0, 0]
    remove_frame(ax)
    ax.set(xlim=(0.0, max_width), ylim=(height, 0.0))
    if title:
        ax.text(0.0, 0.12, title, ha="left", va="center", fontsize=10, fontweight="bold")
    for name, label, width, value, (left, line) in zip(names, labels, widths, values.tolist(), positions, strict=True):
        top = 0.3 * bool(title) + 0.5 * line
        ax.add_patch(_coloured_box((left, top + 0.03), (width, 0.26), value / limit, rounding=0.05))
        middle = left + width / 2
        ax.text(middle, top + 0.165, name, ha="center", va="center", fontsize=11)
        ax.text(middle, top + 0.37, label, ha="center", va="center", fontsize=7)
    _draw_scale(ax, height - 0.28, limit)
    return figure


def text_width(text: str, size: float) -> float:
    """Width of a text in the figures' font, in inches at `size` points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), False)
    return float(width) / 72


def _break_lines(widths: Sequence[float], max_width: float) -> tuple[list[tuple[float, int]], int]:
    """Left edge and line of each word, and the number of lines."""
    positions, left, line = [], 0.0, 0
    for width in widths:
        if left and left + width > max_width:
            left, line = 0.0, line + 1
        positions.append((left, line))
        left += width + 0.05
    return positions, line + 1


def _coloured_box(corner: tuple[float, float], size: tuple[float, float], value: float, *, rounding: float) -> "Patch":
    """A box coloured by the sign of `value`, in [−1, 1], with opacity by its size."""
    from matplotlib.patches import FancyBboxPatch

    style = f"round,pad=0,rounding_size={rounding}"
    colour, alpha = POSITIVE if value > 0 else NEGATIVE, MAX_ALPHA * min(1.0, abs(value))
    return FancyBboxPatch(corner, *size, style, facecolor=colour, alpha=alpha, edgecolor="none")


def _draw_scale(ax: "Axes", top: float, limit: float) -> None:
    """The colour scale from the most negative to the most positive attribution."""
    steps, width, left = 11, 0.16, 1.1
    for step in range(steps):
        value = 2 * step / (steps - 1) - 1
        ax.add_patch(_coloured_box((left + width * step, top), (width, 0.14), value, rounding=0.001))
    ax.text(left - 0.08, top + 0.07, f"lowers  −{limit:.2g}", ha="right", va="center", fontsize=8.5)
    ax.text(left + width * steps + 0.08, top + 0.07, f"+{limit:.2g}  raises", ha="left", va="center", fontsize=8.5)
