"""Plots of single comparisons: measured values as dots, predictions as lines, accepted and forbidden regions."""

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from parnassus.atlas.evidence import Agreement, Bound, PowerLaw, PValue
from parnassus.report.number_line import (
    LARGEST,
    MEASURED,
    PREDICTED,
    axis_limits,
    draw_number_line,
    hatch_forbidden,
    plot_points,
    set_ticks,
    write_note,
)
from parnassus.report.plots import is_noisy
from parnassus.report.style import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[np.float64]"
KEYS = ("measured", "measured, outside", "predicted", "bound", "accepted", "forbidden", "worst")
MAX_SEPARATE = 24  # number of elements up to which each has its own line


def draw_one_agreement(ax: "Axes", comparison: Agreement, sentence: str, *, holds: bool) -> None:
    """A number line of values, or of deviations in units of the tolerance if these are relatively small."""
    (measured,), (predicted,), (tolerance,) = comparison.measured, comparison.predicted, comparison.tolerance
    if 0 < max(abs(measured - predicted), tolerance) < 1e-3 * abs(predicted) < inf:
        unit = tolerance or 1.0
        sentence = f"deviation{' / tolerance' if tolerance else ''}\n{sentence}"
        measured, predicted, tolerance = (measured - predicted) / unit, 0.0, tolerance / unit
    draw_number_line(ax, measured, predicted, (predicted - tolerance, predicted + tolerance), holds=holds)
    ax.set_xlabel(sentence)


def draw_one_bound(ax: "Axes", comparison: Bound, sentence: str, *, holds: bool) -> None:
    """A number line, logarithmic if value and bound differ by orders of magnitude."""
    (measured,), (bound,) = comparison.measured, comparison.bound
    accepted = (-inf, bound) if comparison.upper else (bound, inf)
    draw_number_line(ax, measured, bound, accepted, holds=holds, log=_needs_log_scale(np.array([measured, bound])))
    ax.set_xlabel(sentence)


def draw_p_value(ax: "Axes", comparison: PValue, sentence: str, *, holds: bool) -> None:
    """A p-value and its level on a logarithmic scale up to 1."""
    accepted = (-inf, comparison.level) if comparison.below else (comparison.level, inf)
    left = min(number for number in (comparison.value, 1e-2 * comparison.level) if number > 0) / 2
    draw_number_line(ax, comparison.value, comparison.level, accepted, holds=holds, log=True, limits=(left, 1.0))
    ax.set_xlabel(sentence)


@dataclass(frozen=True)
class _Elements:
    """Elements of a comparison, plotted over their indices, or over their targets if these are not monotone."""

    measured: Array
    target: Array
    outside: "NDArray[np.bool_]"
    indices: Array
    worst: "NDArray[np.bool_]"  # the element with the largest deviation
    are_separate: bool
    log: bool

    @property
    def is_diagonal(self) -> bool:
        return not self.are_separate and is_noisy(self.target)

    @property
    def x(self) -> Array:
        return self.target if self.is_diagonal else self.indices

    def outline(self, *heights: Array) -> list[Array]:
        """Sorted positions and `heights` over them: a level for each separate element, or one line."""
        if self.are_separate:
            ends = self.x[:, None] + [-0.4, 0.4, 0.4]
            return [ends.ravel(), *((each[:, None] * [1.0, 1.0, np.nan]).ravel() for each in heights)]
        order = np.argsort(self.x, kind="stable")
        return [self.x[order], *(each[order] for each in heights)]


def draw_agreement(ax: "Axes", comparison: Agreement, sentence: str) -> None:
    """Values with their tolerance band, and deviations in units of the tolerance if the band is too narrow."""
    kept, measured, predicted = _drawable_pairs(comparison.measured, comparison.predicted)
    if not kept.size:
        write_note(ax, sentence)
        return
    tolerance, deviation = np.minimum(comparison.tolerance, LARGEST)[kept], measured - predicted
    has_relative_tolerances = bool(np.ptp(tolerance) > 0)
    log = has_relative_tolerances and _needs_log_scale(np.concatenate([measured, predicted]))
    worst = (kept == comparison.worst) & (deviation != 0)
    indices, are_separate = np.array(comparison.places)[kept], kept.size <= MAX_SEPARATE
    elements = _Elements(measured, predicted, np.abs(deviation) > tolerance, indices, worst, are_separate, log)
    has_readable_values, has_visible_deviations = _check_scales(elements, deviation, tolerance)
    if has_readable_values:
        low, high = predicted - tolerance, predicted + tolerance
        _plot_values(ax, elements, "predicted", axis_limits(*measured, *low, *high, log=log))
        if tolerance.any():
            x, low, high = elements.outline(low, high)
            ax.fill_between(x, low, high, color=PREDICTED, alpha=0.2, linewidth=0, label="accepted")
    if not (has_readable_values and has_visible_deviations):
        ax = _add_panel_below(ax) if has_readable_values else ax
        _plot_deviations(ax, elements, deviation, tolerance)
    ax.set_xlabel(f"{'predicted' if elements.is_diagonal else 'element'}\n{sentence}")


def _check_scales(elements: _Elements, deviation: Array, tolerance: Array) -> tuple[bool, bool]:
    """Whether an axis of the values is readable, and whether their deviations are visible on it."""
    if not (deviation.any() or tolerance.any()):
        return True, True
    step = np.abs(elements.target) if elements.log else np.ones_like(deviation)  # on a log scale, steps are relative
    lower = elements.target - tolerance * (not elements.log)
    values = np.concatenate([elements.measured, lower, elements.target + tolerance])
    span = float(np.ptp(np.log(values) if elements.log else values))
    largest = max(np.median(tolerance / step), np.max(np.abs(deviation) / step))
    is_readable = bool(elements.log or span >= 1e-3 * np.abs(values).max())
    return is_readable, bool(largest >= 0.02 * span or not deviation.any())


def draw_bound(ax: "Axes", comparison: Bound, sentence: str) -> None:
    """Values and the bound that they must not cross."""
    kept, measured, bound = _drawable_pairs(comparison.measured, comparison.bound)
    if not kept.size:
        write_note(ax, sentence)
        return
    outside = measured > bound if comparison.upper else measured < bound
    log = _needs_log_scale(np.concatenate([measured, bound]))
    indices, worst = np.array(comparison.places)[kept], kept == comparison.worst
    elements = _Elements(measured, bound, outside, indices, worst, kept.size <= MAX_SEPARATE, log)
    _plot_values(ax, elements, "bound", axis_limits(*measured, *bound, log=log))
    x, edge = elements.outline(bound)
    hatch_forbidden(ax.fill_between(x, edge, ax.get_ylim()[1 if comparison.upper else 0]))
    ax.set_xlabel(f"{'bound' if elements.is_diagonal else 'element'}\n{sentence}")


def _plot_values(ax: "Axes", elements: _Elements, label: str, limits: tuple[float, float]) -> None:
    """Measured values as dots, and the line of their targets."""
    ax.set(
        yscale="log" if elements.log else "linear",
        xscale="log" if elements.log and elements.is_diagonal else "linear",
        ylim=limits,
    )
    plot_points(ax, elements.x, elements.measured, elements.outside, size=5 if elements.are_separate else 4)
    x, line = elements.outline(elements.target)
    ax.plot(x, line, color=PREDICTED, linewidth=1.8 if elements.are_separate else 1.2, label=label)
    _mark_worst(ax, elements, elements.measured)
    set_ticks(ax.xaxis, log=elements.log and elements.is_diagonal, integer=not elements.is_diagonal)
    set_ticks(ax.yaxis, log=elements.log)
    if elements.is_diagonal:
        ax.set_ylabel("measured")


def _plot_deviations(ax: "Axes", elements: _Elements, deviation: Array, tolerance: Array) -> None:
    """Deviations from the predictions, in units of the tolerances if there are any."""
    relative = deviation / np.where(tolerance > 0, tolerance, 1.0)
    if tolerance.any():
        ax.axhspan(-1, 1, color=PREDICTED, alpha=0.2, linewidth=0, label="accepted")
    ax.axhline(0, color=PREDICTED, linewidth=1.2, label="predicted")
    plot_points(ax, elements.x, relative, elements.outside, size=4)
    _mark_worst(ax, elements, relative)
    reach = max(float(np.abs(relative).max()), 1.0 if tolerance.any() else 0.0)
    ax.set(ylim=(-1.25 * reach, 1.25 * reach), yticks=[-reach, 0.0, reach])
    set_ticks(ax.xaxis, log=elements.log and elements.is_diagonal, integer=not elements.is_diagonal)
    ax.set_ylabel("deviation /\ntolerance" if tolerance.any() else "deviation", fontsize=8)


def _add_panel_below(ax: "Axes") -> "Axes":
    """A second panel with the same x axis, in the lower third of `ax`."""
    spec = ax.get_subplotspec()
    assert spec is not None
    halves = spec.subgridspec(2, 1, height_ratios=(2, 1), hspace=0.0)
    ax.set_subplotspec(halves[0, 0])
    ax.tick_params(labelbottom=False)
    return ax.figure.add_subplot(halves[1, 0], sharex=ax)


def draw_power_law(ax: "Axes", comparison: PowerLaw) -> None:
    """Points on logarithmic scales with the fitted line and the range of accepted exponents."""
    x = np.geomspace(min(comparison.x), max(comparison.x), 50)

    def line(exponent: float) -> Array:
        return np.asarray(comparison.centre[1] * (x / comparison.centre[0]) ** exponent)

    low, high = line(comparison.predicted - comparison.tolerance), line(comparison.predicted + comparison.tolerance)
    ax.fill_between(x, low, high, color=PREDICTED, alpha=0.2, linewidth=0, label="accepted")
    ax.plot(comparison.x, comparison.y, "o", color=MEASURED, markersize=5, label="measured")
    fitted = ax.plot(x, line(comparison.exponent), color=MEASURED)
    predicted = ax.plot(x, line(comparison.predicted), "--", color=PREDICTED)
    ax.set(xscale="log", yscale="log", xlabel="x", ylabel="y")
    set_ticks(ax.xaxis, log=True)
    set_ticks(ax.yaxis, log=True)
    labels = [
        f"fitted: exponent {comparison.exponent:.4g}",
        f"predicted: {comparison.predicted:g} ± {comparison.tolerance:g}",
    ]
    ax.legend(fitted + predicted, labels)


def _mark_worst(ax: "Axes", elements: _Elements, heights: Array) -> None:
    if elements.worst.any():
        ax.plot(
            elements.x[elements.worst],
            heights[elements.worst],
            "o",
            markersize=9,
            color=INK,
            fillstyle="none",
            label="worst",
        )


def _drawable_pairs(measured: tuple[float, ...], target: tuple[float, ...]) -> tuple["NDArray[np.intp]", Array, Array]:
    """The indices of the pairs that can be drawn, and these pairs."""
    pairs = np.array([measured, target])
    kept = np.flatnonzero((np.abs(pairs) <= LARGEST).all(axis=0))
    return kept, pairs[0, kept], pairs[1, kept]


def _needs_log_scale(numbers: Array) -> bool:
    """Whether the numbers are positive and differ by a factor above 1000, or are too small for a linear axis."""
    finite = numbers[np.abs(numbers) <= LARGEST]
    return bool(finite.size and finite.min() > 0 and (finite.max() > 1e3 * finite.min() or finite.max() < 1e-280))
