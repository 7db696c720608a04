"""One comparison on its axes: dots are measured, lines predicted; a tint is accepted, hatching is forbidden."""

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from parnassus.atlas.evidence import Agreement, Bound, PowerLaw, PValue
from parnassus.report.ink import INK
from parnassus.report.number_line import (
    LARGEST,
    MEASURED,
    PREDICTED,
    dots,
    forbid,
    no_place,
    number_line,
    ticks,
    window,
)
from parnassus.report.plots import jagged

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[np.float64]"
KEYS = ("measured", "measured, outside", "predicted", "bound", "accepted", "forbidden", "worst")
FEW = 24  # elements that stand apart, each with a line of its own


def draw_one_agreement(ax: "Axes", found: Agreement, sentence: str, *, holds: bool) -> None:
    """A number line of values, or of tolerances where the values differ too late in their digits."""
    (measured,), (predicted,), (tolerance,) = found.measured, found.predicted, found.tolerance
    if 0 < max(abs(measured - predicted), tolerance) < 1e-3 * abs(predicted) < inf:
        unit = tolerance or 1.0
        sentence = f"{'tolerances' if tolerance else 'how far'} off\n{sentence}"
        measured, predicted, tolerance = (measured - predicted) / unit, 0.0, tolerance / unit
    number_line(ax, measured, predicted, (predicted - tolerance, predicted + tolerance), holds=holds)
    ax.set_xlabel(sentence)


def draw_one_bound(ax: "Axes", found: Bound, sentence: str, *, holds: bool) -> None:
    """A number line, logarithmic where number and bound are far apart."""
    (measured,), (bound,) = found.measured, found.bound
    accepted = (-inf, bound) if found.upper else (bound, inf)
    number_line(ax, measured, bound, accepted, holds=holds, log=_wide(np.array([measured, bound])))
    ax.set_xlabel(sentence)


def draw_p_value(ax: "Axes", found: PValue, sentence: str, *, holds: bool) -> None:
    """A p-value and its level on a log scale that ends at 1."""
    accepted = (-inf, found.level) if found.below else (found.level, inf)
    left = min(number for number in (found.value, 1e-2 * found.level) if number > 0) / 2
    number_line(ax, found.value, found.level, accepted, holds=holds, log=True, limits=(left, 1.0))
    ax.set_xlabel(sentence)


@dataclass(frozen=True)
class _Row:
    """Numbers in a row: drawn over their places, or over their targets where these go up and down."""

    measured: Array
    target: Array
    outside: "NDArray[np.bool_]"
    places: Array
    worst: "NDArray[np.bool_]"  # the element that decides
    few: bool
    log: bool

    @property
    def diagonal(self) -> bool:
        return not self.few and jagged(self.target)

    @property
    def x(self) -> Array:
        return self.target if self.diagonal else self.places

    def outline(self, *heights: Array) -> list[Array]:
        """Places in order and `heights` over them: a level for each of a few elements, else one line."""
        if self.few:
            ends = self.x[:, None] + [-0.4, 0.4, 0.4]
            return [ends.ravel(), *((each[:, None] * [1.0, 1.0, np.nan]).ravel() for each in heights)]
        order = np.argsort(self.x, kind="stable")
        return [self.x[order], *(each[order] for each in heights)]


def draw_agreement(ax: "Axes", found: Agreement, sentence: str) -> None:
    """Values with their band; where it is too thin to be seen, how many tolerances they are off, too or instead."""
    kept, measured, predicted = _placed(found.measured, found.predicted)
    if not kept.size:
        no_place(ax, sentence)
        return
    tolerance, off = np.minimum(found.tolerance, LARGEST)[kept], measured - predicted
    log = bool(np.ptp(tolerance) > 0) and _wide(np.concatenate([measured, predicted]))  # tolerances are relative
    worst = (kept == found.worst) & (off != 0)
    places, few = np.array(found.places)[kept], kept.size <= FEW
    row = _Row(measured, predicted, np.abs(off) > tolerance, places, worst, few, log)
    readable, seen = _scales(row, off, tolerance)
    if readable:
        low, high = predicted - tolerance, predicted + tolerance
        _values(ax, row, "predicted", window(*measured, *low, *high, log=log))
        if tolerance.any():
            x, low, high = row.outline(low, high)
            ax.fill_between(x, low, high, color=PREDICTED, alpha=0.2, linewidth=0, label="accepted")
    if not (readable and seen):
        ax = _below(ax) if readable else ax
        _deviations(ax, row, off, tolerance)
    ax.set_xlabel(f"{'predicted' if row.diagonal else 'element'}\n{sentence}")


def _scales(row: _Row, off: Array, tolerance: Array) -> tuple[bool, bool]:
    """Whether an axis of the values can be read, and whether all there is to see of their deviations is seen on it."""
    if not (off.any() or tolerance.any()):
        return True, True
    step = np.abs(row.target) if row.log else np.ones_like(off)  # on a log scale, steps are relative
    every = np.concatenate([row.measured, row.target - tolerance * (not row.log), row.target + tolerance])
    span = float(np.ptp(np.log(every) if row.log else every))
    largest = max(np.median(tolerance / step), np.max(np.abs(off) / step))
    return bool(row.log or span >= 1e-3 * np.abs(every).max()), bool(largest >= 0.02 * span or not off.any())


def draw_bound(ax: "Axes", found: Bound, sentence: str) -> None:
    """Values and the line that they must not cross."""
    kept, measured, bound = _placed(found.measured, found.bound)
    if not kept.size:
        no_place(ax, sentence)
        return
    outside = measured > bound if found.upper else measured < bound
    log = _wide(np.concatenate([measured, bound]))
    row = _Row(measured, bound, outside, np.array(found.places)[kept], kept == found.worst, kept.size <= FEW, log)
    _values(ax, row, "bound", window(*measured, *bound, log=log))
    x, edge = row.outline(bound)
    forbid(ax.fill_between(x, edge, ax.get_ylim()[1 if found.upper else 0]))
    ax.set_xlabel(f"{'bound' if row.diagonal else 'element'}\n{sentence}")


def _values(ax: "Axes", row: _Row, label: str, limits: tuple[float, float]) -> None:
    """Measured numbers as dots under the line of their targets."""
    ax.set(yscale="log" if row.log else "linear", xscale="log" if row.log and row.diagonal else "linear", ylim=limits)
    dots(ax, row.x, row.measured, row.outside, size=5 if row.few else 4)
    x, line = row.outline(row.target)
    ax.plot(x, line, color=PREDICTED, linewidth=1.8 if row.few else 1.2, label=label)
    _ring(ax, row, row.measured)
    ticks(ax.xaxis, log=row.log and row.diagonal, whole=not row.diagonal)
    ticks(ax.yaxis, log=row.log)
    if row.diagonal:
        ax.set_ylabel("measured")


def _deviations(ax: "Axes", row: _Row, off: Array, tolerance: Array) -> None:
    """How far each is off, in its own tolerances where there are any."""
    relative = off / np.where(tolerance > 0, tolerance, 1.0)
    if tolerance.any():
        ax.axhspan(-1, 1, color=PREDICTED, alpha=0.2, linewidth=0, label="accepted")
    ax.axhline(0, color=PREDICTED, linewidth=1.2, label="predicted")
    dots(ax, row.x, relative, row.outside, size=4)
    _ring(ax, row, relative)
    reach = max(float(np.abs(relative).max()), 1.0 if tolerance.any() else 0.0)
    ax.set(ylim=(-1.25 * reach, 1.25 * reach), yticks=[-reach, 0.0, reach])
    ticks(ax.xaxis, log=row.log and row.diagonal, whole=not row.diagonal)
    ax.set_ylabel("tolerances\noff" if tolerance.any() else "off", fontsize=8)


def _below(ax: "Axes") -> "Axes":
    """A lower panel over the same places, for which `ax` makes room."""
    place = ax.get_subplotspec()
    assert place is not None
    halves = place.subgridspec(2, 1, height_ratios=(2, 1), hspace=0.0)
    ax.set_subplotspec(halves[0, 0])
    ax.tick_params(labelbottom=False)
    return ax.figure.add_subplot(halves[1, 0], sharex=ax)


def draw_power_law(ax: "Axes", law: PowerLaw) -> None:
    """Points on log scales, the line fitted to them and the wedge of the exponents that are accepted."""
    x = np.geomspace(min(law.x), max(law.x), 50)

    def line(exponent: float) -> Array:
        return np.asarray(law.centre[1] * (x / law.centre[0]) ** exponent)

    low, high = line(law.predicted - law.tolerance), line(law.predicted + law.tolerance)
    ax.fill_between(x, low, high, color=PREDICTED, alpha=0.2, linewidth=0, label="accepted")
    ax.plot(law.x, law.y, "o", color=MEASURED, markersize=5, label="measured")
    fitted = ax.plot(x, line(law.exponent), color=MEASURED)
    predicted = ax.plot(x, line(law.predicted), "--", color=PREDICTED)
    ax.set(xscale="log", yscale="log", xlabel="x", ylabel="y")
    ticks(ax.xaxis, log=True)
    ticks(ax.yaxis, log=True)
    words = [f"fitted: exponent {law.exponent:.4g}", f"predicted: {law.predicted:g} ± {law.tolerance:g}"]
    ax.legend(fitted + predicted, words)


def _ring(ax: "Axes", row: _Row, heights: Array) -> None:
    if row.worst.any():
        ax.plot(row.x[row.worst], heights[row.worst], "o", markersize=9, color=INK, fillstyle="none", label="worst")


def _placed(measured: tuple[float, ...], target: tuple[float, ...]) -> tuple["NDArray[np.intp]", Array, Array]:
    """Which pairs have a place in a figure, and these pairs."""
    pairs = np.array([measured, target])
    kept = np.flatnonzero((np.abs(pairs) <= LARGEST).all(axis=0))
    return kept, pairs[0, kept], pairs[1, kept]


def _wide(numbers: Array) -> bool:
    """Whether numbers, all positive, differ by more than a factor of 1000, or are too small for a linear axis."""
    finite = numbers[np.abs(numbers) <= LARGEST]
    return bool(finite.size and finite.min() > 0 and (finite.max() > 1e3 * finite.min() or finite.max() < 1e-280))
