"""Number lines with accepted intervals, and the points, ticks and limits that all figures of evidence use."""

from math import isclose, isinf, isnan
from typing import TYPE_CHECKING

import numpy as np

from parnassus.report.style import FAINT, PALETTE

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

MEASURED, PREDICTED = PALETTE[0], PALETTE[1]
LARGEST = 1e300  # larger numbers cannot be drawn on an axis


def draw_number_line(
    ax: "Axes",
    measured: float,
    target: float,
    accepted: tuple[float, float],
    *,
    holds: bool,
    log: bool = False,
    limits: tuple[float, float] | None = None,
) -> None:
    """Draw `measured`, its `target` and the `accepted` interval, between `limits`."""
    low, high = accepted
    left, right = limits or axis_limits(measured, target, low, high, log=log)
    ax.set(xscale="log" if log else "linear", xlim=(left, right), ylim=(0, 1), yticks=[])
    set_ticks(ax.xaxis, log=log)
    ax.spines["left"].set_visible(False)
    ax.grid(visible=False)
    if isnan(measured) or not abs(target) <= LARGEST:
        write_note(ax, "not a number" if isnan(measured) or isnan(target) else "infinite")
        return
    bounded = isinf(low) != isinf(high)
    if bounded:
        hatch_forbidden(ax.axvspan(*((high, right) if isinf(low) else (left, low))))
    elif low < high:
        ax.axvspan(max(low, left), min(high, right), color=PREDICTED, alpha=0.2, linewidth=0, label="accepted")
    ax.axvline(target, color=PREDICTED, label="bound" if bounded else "predicted")
    marker = "<" if measured < left else ">" if measured > right else "o"  # outside the limits
    plot_points(ax, [min(max(measured, left), right)], [0.5], [not holds], size=9, marker=marker)


def plot_points(ax: "Axes", x: object, y: object, outside: object, *, size: float, marker: str = "o") -> None:
    """Plot measured values as dots, and as crosses outside the accepted interval."""
    x, y, is_outside = np.asarray(x), np.asarray(y), np.asarray(outside)
    for selected, shape, label in ((~is_outside, marker, "measured"), (is_outside, "x", "measured, outside")):
        if selected.any():
            (line,) = ax.plot(x[selected], y[selected], shape, color=MEASURED, label=label, clip_on=False)
            line.set(markersize=size, markeredgewidth=size / 3)


def hatch_forbidden(area: "Artist") -> None:
    """Give an area the style of a forbidden region."""
    area.set(facecolor="none", edgecolor=FAINT, hatch="////", linewidth=0, label="forbidden")


def write_note(ax: "Axes", text: str) -> None:
    """Write a text in the middle of axes without ticks."""
    ax.set(xticks=[], yticks=[])
    ax.text(0.5, 0.5, text, ha="center", va="center", transform=ax.transAxes)


def set_ticks(axis: "Axis", *, log: bool, integer: bool = False) -> None:
    """Set a few ticks with labels in plain text, which is rendered much faster than mathtext."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    low, high = axis.get_view_interval()
    if log:
        axis.set_major_locator(LogLocator(subs=(1.0,) if high > 100 * low else (1.0, 2.0, 5.0), numticks=5))
        axis.set_major_formatter(lambda number, _: _format_power(number))
    else:
        min_ticks = 1 if integer else 3
        axis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10], min_n_ticks=min_ticks, integer=integer))
        axis.set_major_formatter(lambda number, _: _format_plain(number, *axis.get_view_interval()))
    axis.set_minor_locator(NullLocator())


def _format_plain(number: float, low: float, high: float) -> str:
    """The number, rounded to 0 if it is negligible on an axis from `low` to `high`."""
    return f"{number if abs(number) > 1e-6 * (high - low) else 0.0:.6g}".replace("-", "−")


def _format_power(number: float) -> str:
    """The number, as 10⁻⁷ for a power of ten that is not close to 1."""
    exponent = float(np.log10(number)) if number > 0 else 0.0
    if abs(exponent) < 2.5 or not isclose(exponent, round(exponent), abs_tol=1e-6):
        return f"{number:g}"
    return "10" + str(round(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def axis_limits(*numbers: float, log: bool = False) -> tuple[float, float]:
    """Limits around the `numbers` that can be drawn, with a margin at both ends."""
    drawable = [number for number in numbers if abs(number) <= LARGEST and (number > 0 or not log)]
    if log:
        left, right = axis_limits(*np.log10(drawable))
        return float(10 ** max(left, -307.0)), float(10 ** min(right, 307.0))
    low, high = min(drawable, default=0.0), max(drawable, default=0.0)
    margin = 0.15 * (high - low) or 0.1 * abs(low) or 1.0
    return low - margin, high + margin
