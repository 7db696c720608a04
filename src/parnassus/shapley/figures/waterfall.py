"""Waterfall plot: from the base value to the prediction, attribution by attribution."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from parnassus.report.formatting import format_number
from parnassus.report.style import FAINT, INK, PALETTE, as_array, subplots

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

POSITIVE, NEGATIVE = PALETTE[1], PALETTE[0]
"""Colours of positive and negative attributions."""
ROUNDING_RATIO = 1e-12
"""Attributions below this fraction of the largest number in a sum are rounding errors."""


def plot_waterfall(
    base_value: float,
    attributions: object,
    names: Sequence[str],
    *,
    errors: object | None = None,
    max_display: int = 12,
    x_label: str = "",
) -> "Figure":
    """Bars from the base value to the prediction, the largest on top; those beyond `max_display` are one bar."""
    shown = largest_attributions(
        as_array(attributions), names, None if errors is None else as_array(errors), max_display
    )
    figure, axes = subplots(size=(7.2, 1.1 + 0.36 * len(shown)))
    ax = axes[0, 0]
    end, largest = base_value, max(abs(base_value), *(abs(value) for _, value, _ in shown))
    for row, (_, value, error) in enumerate(shown):
        is_known, side = np.isfinite(error), 1 if value > 0 else -1
        ax.barh(row, value, left=end, color=POSITIVE if value > 0 else NEGATIVE, height=0.7)
        end += value
        if error and is_known:
            ax.errorbar(end, row, xerr=error, color=INK, linewidth=1, capsize=2)
        ax.plot([end, end], [row, row + 1], color=FAINT, linewidth=0.8)
        ax.annotate(
            format_signed(value, largest, 3) + ("" if is_known else " ± ∞"),
            (end + side * error if is_known else end, row),
            xytext=(5 * side, 0),
            textcoords="offset points",
            ha="left" if value > 0 else "right",
            va="center",
            fontsize=8.5,
        )
    for value, height in ((base_value, -0.75), (end, len(shown) - 0.25)):
        ax.annotate(format_number(value), (value, height), ha="center", va="center", fontsize=9, fontweight="bold")
    ax.plot([base_value, base_value], [-0.5, 0], color=FAINT, linewidth=0.8)
    ax.set_yticks(range(len(shown)), [name for name, _, _ in shown])
    ax.use_sticky_edges = False  # bars would touch the frame, and their numbers the names
    ax.margins(x=0.17)
    ax.set(ylim=(-1.1, len(shown) + 0.1), xlabel=x_label)
    ax.grid(visible=False, axis="y")
    return figure


def format_signed(value: float, largest: float, digits: int = 4) -> str:
    """A number with its sign; 0 if it is within the rounding of the `largest` number in its sum."""
    if abs(value) <= ROUNDING_RATIO * abs(largest):
        return "0"
    return "+" * (value > 0) + format_number(value, digits)


def largest_attributions(
    values: "NDArray[np.float64]", names: Sequence[str], errors: "NDArray[np.float64] | None", max_display: int
) -> list[tuple[str, float, float]]:
    """Name, attribution and error in order of increasing size; those beyond `max_display` come first, as one."""
    if len(values) != len(names):
        raise ValueError(f"each attribution needs a name; got {len(names)} names for {len(values)} attributions")
    known_errors = np.zeros_like(values) if errors is None else errors
    order = np.argsort(np.abs(values))
    small = order[: max(0, len(order) - max_display)]
    shown = [(names[index], float(values[index]), float(known_errors[index])) for index in order[len(small) :]]
    if len(small):
        rest = float(values[small].sum()), float(np.sqrt(np.square(known_errors[small]).sum()))
        shown.insert(0, (f"{len(small)} other{'s' * (len(small) > 1)}", *rest))
    return shown
