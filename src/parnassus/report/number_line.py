"""A number line with what is accepted on it, and what all figures of evidence draw alike: dots, ticks, limits."""

from math import isclose, isinf, isnan
from typing import TYPE_CHECKING

import numpy as np

from parnassus.report.ink import FAINT, PALETTE

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

MEASURED, PREDICTED = PALETTE[0], PALETTE[1]
LARGEST = 1e300  # beyond it, a number has no place on an axis


def number_line(
    ax: "Axes",
    measured: float,
    target: float,
    accepted: tuple[float, float],
    *,
    holds: bool,
    log: bool = False,
    limits: tuple[float, float] | None = None,
) -> None:
    """`measured` beside its `target` and the interval that is `accepted`, between `limits`."""
    low, high = accepted
    left, right = limits or window(measured, target, low, high, log=log)
    ax.set(xscale="log" if log else "linear", xlim=(left, right), ylim=(0, 1), yticks=[])
    ticks(ax.xaxis, log=log)
    ax.spines["left"].set_visible(False)
    ax.grid(visible=False)
    if isnan(measured) or not abs(target) <= LARGEST:
        no_place(ax, "not a number" if isnan(measured) or isnan(target) else "infinite")
        return
    bounded = isinf(low) != isinf(high)
    if bounded:
        forbid(ax.axvspan(*((high, right) if isinf(low) else (left, low))))
    elif low < high:
        ax.axvspan(max(low, left), min(high, right), color=PREDICTED, alpha=0.2, linewidth=0, label="accepted")
    ax.axvline(target, color=PREDICTED, label="bound" if bounded else "predicted")
    marker = "<" if measured < left else ">" if measured > right else "o"  # beyond an end of the line
    dots(ax, [min(max(measured, left), right)], [0.5], [not holds], size=9, marker=marker)


def dots(ax: "Axes", x: object, y: object, outside: object, *, size: float, marker: str = "o") -> None:
    """Measured numbers: dots, and crosses where they are outside of what is accepted."""
    places, heights, missed = np.asarray(x), np.asarray(y), np.asarray(outside)
    for chosen, shape, label in ((~missed, marker, "measured"), (missed, "x", "measured, outside")):
        if chosen.any():
            (drawn,) = ax.plot(places[chosen], heights[chosen], shape, color=MEASURED, label=label, clip_on=False)
            drawn.set(markersize=size, markeredgewidth=size / 3)


def forbid(area: "Artist") -> None:
    area.set(facecolor="none", edgecolor=FAINT, hatch="////", linewidth=0, label="forbidden")


def no_place(ax: "Axes", words: str) -> None:
    ax.set(xticks=[], yticks=[])
    ax.text(0.5, 0.5, words, ha="center", va="center", transform=ax.transAxes)


def ticks(axis: "Axis", *, log: bool, whole: bool = False) -> None:
    """A few numbers along `axis`, each written out: plain text, which is drawn much faster than formulas are."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    low, high = axis.get_view_interval()
    if log:
        axis.set_major_locator(LogLocator(subs=(1.0,) if high > 100 * low else (1.0, 2.0, 5.0), numticks=5))
        axis.set_major_formatter(lambda number, _: _power(number))
    else:
        least = 1 if whole else 3
        axis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10], min_n_ticks=least, integer=whole))
        axis.set_major_formatter(lambda number, _: _plain(number, *axis.get_view_interval()))
    axis.set_minor_locator(NullLocator())


def _plain(number: float, low: float, high: float) -> str:
    """The number, or the 0 that was meant, on an axis from `low` to `high`."""
    return f"{number if abs(number) > 1e-6 * (high - low) else 0.0:.6g}".replace("-", "−")


def _power(number: float) -> str:
    """10⁻⁷ where it is a power of ten and not near 1, else the number itself."""
    exponent = float(np.log10(number)) if number > 0 else 0.0
    if abs(exponent) < 2.5 or not isclose(exponent, round(exponent), abs_tol=1e-6):
        return f"{number:g}"
    return "10" + str(round(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def window(*numbers: float, log: bool = False) -> tuple[float, float]:
    """Limits around those of the `numbers` that have a place, with room at the ends."""
    placed = [number for number in numbers if abs(number) <= LARGEST and (number > 0 or not log)]
    if log:
        left, right = window(*np.log10(placed))
        return float(10 ** max(left, -307.0)), float(10 ** min(right, 307.0))
    low, high = min(placed, default=0.0), max(placed, default=0.0)
    room = 0.15 * (high - low) or 0.1 * abs(low) or 1.0
    return low - room, high + room
