"""Force plot: attributions as arrows that push a prediction up and down from its base value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parnassus.report.formatting import format_number
from parnassus.report.style import FAINT, INK, as_array, remove_frame, subplots
from parnassus.shapley.figures.text import text_width
from parnassus.shapley.figures.waterfall import (
    NEGATIVE,
    POSITIVE,
    ROUNDING_RATIO,
    format_signed,
    largest_attributions,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAR_WIDTH = 8.2
"""Width of the bar with its labels, in inches."""
LABEL_SIZE = 8.5
"""Font size of a label, in points."""


def plot_force(
    base_value: float, attributions: object, names: Sequence[str], *, max_display: int = 10, x_label: str = ""
) -> "Figure":
    """Positive attributions from the left and negative ones from the right, meeting at the prediction.

    The largest are next to the prediction; a label that does not fit into its arrow is below; those beyond
    `max_display` are one arrow.
    """
    shown = largest_attributions(as_array(attributions), names, None, max_display)[::-1]
    prediction = base_value + sum(value for _, value, _ in shown)
    arrows = _arrows(prediction, shown)
    scale, margins = _layout(prediction, arrows)
    below = [[arrow for arrow in arrows if arrow.is_outside(scale) and arrow.sign == sign] for sign in (1, -1)]
    depth = max(map(len, below))
    figure, axes = subplots(size=(BAR_WIDTH + 0.2, 1.4 + 0.2 * depth + 0.25 * bool(x_label)))
    ax = axes[0, 0]
    for arrow in arrows:
        _draw_arrow(ax, arrow, tip=0.07 / scale, inside=not arrow.is_outside(scale))
    for side in below:
        for level, arrow in enumerate(reversed(side)):  # the outermost highest: no line crosses another label
            foot = -0.25 - 0.5 * level
            ax.plot([arrow.middle] * 2, [0, foot], color=arrow.colour, linewidth=0.9)
            left = arrow.middle - arrow.sign * 0.04 / scale
            ax.text(left, foot, arrow.label, **arrow.alignment, fontsize=LABEL_SIZE)
    ax.plot([base_value, base_value], [0, 1.2], color=FAINT, linewidth=1, linestyle=(0, (3, 2)))
    is_near = abs(base_value - prediction) * scale < 0.5
    aside = {"ha": ("left" if base_value >= prediction else "right") if is_near else "center", "va": "bottom"}
    ax.text(base_value, 1.25, f" base {format_number(base_value)} ", **aside, fontsize=LABEL_SIZE)
    ax.plot([prediction, prediction], [0, 1.75], color=INK, linewidth=1.2)
    ax.text(prediction, 1.8, format_number(prediction), ha="center", va="bottom", fontsize=10, fontweight="bold")
    for sign, words, colour in ((1, "raises →", POSITIVE), (-1, "← lowers", NEGATIVE)):
        if any(arrow.sign == sign for arrow in arrows):
            position = prediction - sign * 0.4 / scale
            align = "right" if sign > 0 else "left"
            ax.text(position, 1.85, words, color=colour, ha=align, va="bottom", fontsize=LABEL_SIZE)
    remove_frame(ax)
    ends = [arrow.start for arrow in arrows] + [arrow.end for arrow in arrows] + [base_value, prediction]
    ax.set(xlim=(min(ends) - margins[0] / scale, max(ends) + margins[1] / scale), ylim=(-0.1 - 0.5 * depth, 2.45))
    ax.set_xlabel(x_label, labelpad=2)
    return figure


@dataclass(frozen=True)
class _Arrow:
    """An attribution on the bar: its start, away from the prediction, and its end, towards it."""

    label: str
    start: float
    end: float
    sign: int

    @property
    def middle(self) -> float:
        return (self.start + self.end) / 2

    @property
    def colour(self) -> str:
        return POSITIVE if self.sign > 0 else NEGATIVE

    @property
    def alignment(self) -> dict[str, str]:
        """Labels below extend outwards, away from those of the other side."""
        return {"ha": "right" if self.sign > 0 else "left", "va": "center"}

    @property
    def label_width(self) -> float:
        """Width of the label, in inches."""
        return text_width(self.label, LABEL_SIZE)

    def is_outside(self, scale: float) -> bool:
        """Whether the label is wider than the arrow, at `scale` inches per unit."""
        return self.label_width + 0.2 > abs(self.end - self.start) * scale


def _arrows(prediction: float, shown: "list[tuple[str, float, float]]") -> list[_Arrow]:
    """Positive attributions end at the prediction, in a chain; negative ones begin there."""
    arrows, reached = [], {1: prediction, -1: prediction}
    largest = max(abs(prediction), *(abs(value) for _, value, _ in shown))
    for name, value, _ in shown:
        if abs(value) > ROUNDING_RATIO * largest:
            sign = 1 if value > 0 else -1
            label = f"{name} ({format_signed(value, largest, 3)})"
            arrows.append(_Arrow(label, reached[sign] - value, reached[sign], sign))
            reached[sign] -= value
    return arrows


def _layout(prediction: float, arrows: list[_Arrow]) -> tuple[float, tuple[float, float]]:
    """Inches per unit, and the margins in inches that labels below need; each depends on the other."""
    ends = [arrow.start for arrow in arrows] + [prediction]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0
    margins = (0.9, 0.9)
    for _ in range(4):
        scale = max(1.0, BAR_WIDTH - sum(margins)) / span
        outside = [arrow for arrow in arrows if arrow.is_outside(scale)]
        left = [arrow.label_width - (arrow.middle - low) * scale for arrow in outside if arrow.sign > 0]
        right = [arrow.label_width - (high - arrow.middle) * scale for arrow in outside if arrow.sign < 0]
        words = 0.95 - (prediction - low) * scale, 0.95 - (high - prediction) * scale
        margins = max(0.1, words[0], *left) + 0.05, max(0.1, words[1], *right) + 0.05
    return scale, margins


def _draw_arrow(ax: "Axes", arrow: _Arrow, *, tip: float, inside: bool) -> None:
    """An arrow with a notch at its start and a tip at its end, so that neighbours interlock."""
    from matplotlib.patches import Polygon

    tip = arrow.sign * min(tip, abs(arrow.end - arrow.start) / 2)
    corners = [
        (arrow.start - tip, 0.0),
        (arrow.end - tip, 0.0),
        (arrow.end, 0.5),
        (arrow.end - tip, 1.0),
        (arrow.start - tip, 1.0),
        (arrow.start, 0.5),
    ]
    ax.add_patch(Polygon(corners, closed=True, facecolor=arrow.colour, edgecolor="white", linewidth=0.8))
    if inside:
        label_x = arrow.middle - tip / 2
        ax.text(label_x, 0.5, arrow.label, ha="center", va="center", color="white", fontsize=LABEL_SIZE)
