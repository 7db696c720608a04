"""Evidence: a measured value, a predicted value, and whether the claimed relation between them holds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, Union

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Numbers: TypeAlias = Union[float, "NDArray[np.generic]", "Tensor"]
Vector: TypeAlias = Union[Sequence[float], "NDArray[np.generic]", "Tensor"]
KEPT = 200  # number of evenly spaced elements of a larger array that are kept for figures, besides the decisive one


@dataclass(frozen=True)
class Agreement:
    """Measured and predicted values with an absolute tolerance for each pair."""

    measured: tuple[float, ...]
    predicted: tuple[float, ...]
    tolerance: tuple[float, ...]
    places: tuple[int, ...]  # indices of the values in the flattened arrays
    worst: int  # position of the decisive value
    count: int  # number of elements of the full arrays


@dataclass(frozen=True)
class Bound:
    """Measured values with their upper (`upper=True`) or lower bounds."""

    measured: tuple[float, ...]
    bound: tuple[float, ...]
    upper: bool
    places: tuple[int, ...]
    worst: int
    count: int


@dataclass(frozen=True)
class PowerLaw:
    """Points (x, y) with their fitted exponent and the predicted one."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    exponent: float
    predicted: float
    tolerance: float
    centre: tuple[float, float]  # geometric means of x and y; the fitted line passes through this point


@dataclass(frozen=True)
class PValue:
    """A p-value that is expected to be below its level (`below=True`) or not below it."""

    value: float
    level: float
    below: bool


Compared: TypeAlias = Agreement | Bound | PowerLaw | PValue


@dataclass(frozen=True)
class Evidence:
    """The result of one comparison, or of several that must all hold (`parts`).

    >>> close(0.5, 1 / 2).holds
    True
    """

    measured: str
    relation: str
    predicted: str
    holds: bool
    parts: tuple[tuple[str, "Evidence"], ...] = ()
    compared: Compared | None = field(default=None, repr=False, compare=False)  # the data of its figure

    def __str__(self) -> str:
        return f"{self.measured} {self.relation} {self.predicted}"


@dataclass(frozen=True)
class Correction:
    """The evidence of an erratum: the printed formula must fail and the corrected one must hold.

    >>> Correction(printed=close(0.4, 0.5), corrected=close(0.5, 0.5)).holds
    True
    """

    printed: Evidence
    corrected: Evidence

    @property
    def holds(self) -> bool:
        return self.corrected.holds and not self.printed.holds


def close(measured: Numbers, predicted: Numbers, *, rtol: float = 0.0, atol: float = 0.0) -> Evidence:
    """Elementwise |measured − predicted| ≤ atol + rtol |predicted|; exact equality if both tolerances are 0.

    For arrays, the evidence shows the element with the largest deviation relative to its tolerance.
    """
    left, right = np.broadcast_arrays(_array(measured), _array(predicted))
    if left.size == 0:
        raise ValueError("close needs at least one number; got empty arrays")
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        distance, slack = np.abs(left - right), atol + rtol * np.abs(right)
        excess = np.where(left == right, -np.inf, distance - slack)  # ∞ equals ∞
    worst = int(np.argmax(np.where(np.isnan(excess), np.inf, excess)))
    complex_numbers = np.iscomplexobj(left) or np.iscomplexobj(right)  # complex numbers have a distance but no order
    tolerance = " ± ".join([""] + [f"{atol:g}"] * (atol > 0) + [f"{100 * rtol:g} %"] * (rtol > 0))
    return Evidence(
        measured=_text(left.flat[worst]),
        relation="≈" if atol or rtol else "=",
        predicted=_text(right.flat[worst]) + tolerance,
        holds=bool(np.all(excess <= 0)),
        compared=_bound(distance, slack, worst, upper=True)
        if complex_numbers
        else _agreement(left, right, slack, worst),
    )


def less_equal(measured: Numbers, bound: Numbers) -> Evidence:
    """Elementwise measured ≤ bound; shows the element with the smallest margin."""
    return _compare_bound(_array(measured), "≤", _array(bound), sign=1.0)


def greater_equal(measured: Numbers, bound: Numbers) -> Evidence:
    """Elementwise measured ≥ bound; shows the element with the smallest margin."""
    return _compare_bound(_array(measured), "≥", _array(bound), sign=-1.0)


def exponent(x: Vector, y: Vector) -> float:
    """The exponent r of y ∝ xʳ: the least-squares slope of log y against log x, exact for two points.

    The result is not finite if a value is not positive or if there are fewer than two distinct x.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        log_x, log_y = np.log(_array(x)), np.log(_array(y))
        log_x = log_x - log_x.sum() / log_x.size
        return float(np.divide(log_x @ log_y, log_x @ log_x))


def rate(x: Numbers, y: Numbers, predicted: float, *, atol: float) -> Evidence:
    """The exponent r of y ∝ xʳ (the least-squares slope of log y against log x) is `predicted` up to `atol`."""
    base, power = _array(x), _array(y)
    if base.ndim != 1 or base.shape != power.shape or np.unique(base).size < 2:
        raise ValueError(f"rate needs two or more distinct x, with one y each; got {base.shape} and {power.shape}")
    if not (np.all(base > 0) and np.all(power > 0)):
        raise ValueError(f"rate needs positive numbers; the smallest are x = {base.min():g}, y = {power.min():g}")
    slope = exponent(base, power)
    centre = float(np.exp(np.log(base).mean())), float(np.exp(np.log(power).mean()))
    evidence = close(slope, predicted, atol=atol)
    kept = _kept_indices(base.size)
    power_law = PowerLaw(_floats(base, kept), _floats(power, kept), slope, float(predicted), float(atol), centre)
    return Evidence(
        f"exponent {evidence.measured}", evidence.relation, evidence.predicted, evidence.holds, compared=power_law
    )


def rejects(p_value: float, *, level: float = 1e-3) -> Evidence:
    """A statistical test rejects its null hypothesis: p < level."""
    compared = PValue(float(p_value), level, below=True)
    return Evidence(f"p = {p_value:.3g}", "<", f"{level:g}", bool(p_value < level), compared=compared)


def accepts(p_value: float, *, level: float = 1e-3) -> Evidence:
    """A statistical test does not reject its null hypothesis: p ≥ level."""
    compared = PValue(float(p_value), level, below=False)
    return Evidence(f"p = {p_value:.3g}", "≥", f"{level:g}", bool(p_value >= level), compared=compared)


def raises(expected: type[Exception], action: Callable[[], object]) -> Evidence:
    """`action()` raises an exception of the `expected` type."""
    try:
        action()
    except expected as error:
        return Evidence(f"{type(error).__name__}: {error}".split("\n")[0][:90], "is a", expected.__name__, True)
    return Evidence("no error", "is a", expected.__name__, False)


def runs(action: Callable[[], object], *, unless: type[Exception]) -> Evidence:
    """`action()` does not raise an exception of the type `unless`; other exceptions are not caught."""
    met = raises(unless, action)
    return Evidence(met.measured, "is", "no error", not met.holds)


def all_of(**parts: Evidence) -> Evidence:
    """Combine pieces of evidence that must all hold; underscores in their names are shown as spaces."""
    if not parts:
        raise ValueError("all_of needs at least one piece of evidence; got none")
    named = tuple((name.replace("_", " "), part) for name, part in parts.items())
    failed = [name for name, part in named if not part.holds]
    shown = f"{len(parts) - len(failed)} of {len(parts)} hold" + (f", not: {', '.join(failed)}" if failed else "")
    return Evidence(shown, ":", "; ".join(f"{name}: {part}" for name, part in named), not failed, named)


def _compare_bound(
    measured: "NDArray[np.float64]", relation: str, bound: "NDArray[np.float64]", sign: float
) -> Evidence:
    left, right = np.broadcast_arrays(measured, bound)
    if left.size == 0:
        raise ValueError("a bound needs at least one number; got an empty array")
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        margin = np.where(left == right, 0.0, sign * (right - left))
    worst = int(np.argmin(np.where(np.isnan(margin), -np.inf, margin)))
    shown = _text(left.flat[worst]), relation, _text(right.flat[worst])
    return Evidence(*shown, bool(np.all(margin >= 0)), compared=_bound(left, right, worst, upper=sign > 0))


def _agreement(
    measured: "NDArray[np.float64]", predicted: "NDArray[np.float64]", tolerance: "NDArray[np.float64]", worst: int
) -> Agreement:
    kept = _kept_indices(measured.size, worst)
    numbers = _floats(measured, kept), _floats(predicted, kept), _floats(tolerance, kept)
    return Agreement(*numbers, tuple(kept.tolist()), int(np.searchsorted(kept, worst)), measured.size)


def _bound(measured: "NDArray[np.float64]", bound: "NDArray[np.float64]", worst: int, *, upper: bool) -> Bound:
    kept = _kept_indices(measured.size, worst)
    numbers = _floats(measured, kept), _floats(bound, kept)
    return Bound(*numbers, upper, tuple(kept.tolist()), int(np.searchsorted(kept, worst)), measured.size)


def _kept_indices(count: int, *also: int) -> "NDArray[np.intp]":
    """At most `KEPT` evenly spaced indices below `count`, including both ends, and those in `also`."""
    spread = np.linspace(0, count - 1, min(count, KEPT)).round().astype(np.intp)
    return np.union1d(spread, np.array(also, dtype=np.intp))


def _floats(numbers: "NDArray[np.float64]", kept: "NDArray[np.intp]") -> tuple[float, ...]:
    return tuple(numbers.flat[kept].tolist())


def _array(numbers: Numbers | Vector) -> "NDArray[np.float64]":
    if hasattr(numbers, "detach"):
        numbers = numbers.detach().cpu().numpy()
    array = np.asarray(numbers)
    return array if np.iscomplexobj(array) else array.astype(np.float64)


def _text(number: "np.float64") -> str:
    return f"{number:.6g}"
