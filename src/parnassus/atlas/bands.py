"""Bands (expected ranges of the results of an experiment), and the comparison of a run with its bands."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Band:
    """The expected range of a result, with a description of the result.

    >>> at_least(0.9, "accuracy").holds(0.95)
    True
    """

    low: float
    high: float
    about: str = ""

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high  # False for NaN

    def __str__(self) -> str:
        if self.low == -inf and self.high == inf:
            return ""
        if self.low == -inf:
            return f"≤ {self.high:g}"
        if self.high == inf:
            return f"≥ {self.low:g}"
        return f"{self.low:g} … {self.high:g}"


def at_most(bound: float, about: str = "") -> Band:
    return Band(-inf, bound, about)


def at_least(bound: float, about: str = "") -> Band:
    return Band(bound, inf, about)


def between(low: float, high: float, about: str = "") -> Band:
    if not low <= high:
        raise ValueError(f"a band needs low ≤ high; got low={low}, high={high}")
    return Band(low, high, about)


def no_band(about: str) -> Band:
    """A result without an expected range."""
    return Band(-inf, inf, about)


@dataclass(frozen=True)
class MeasuredValue:
    """A result of a run with its band."""

    name: str
    value: float
    band: str = ""  # the range as text; empty without an expected range
    holds: bool | None = None  # None without an expected range
    about: str = ""

    @property
    def verdict(self) -> str:
        return "" if self.holds is None else "✓ inside" if self.holds else "✗ outside"


@dataclass(frozen=True)
class Verdict:
    """The results of a run, compared with their bands if the bands apply to it."""

    values: tuple[MeasuredValue, ...]
    applies: bool

    @property
    def remark(self) -> str:
        """An explanation for results without bands; empty if the bands apply."""
        if self.applies:
            return ""
        return "No expected ranges are shown: they apply only to the laptop profile with its default settings."


def judge(expected: Mapping[str, Band], results: Mapping[str, float], *, applies: bool) -> Verdict:
    """Compare results with their bands; bands apply only to the laptop profile with its default settings."""
    values = []
    for name, value in results.items():
        band = expected.get(name, no_band(""))
        limits = str(band) if applies else ""
        values.append(MeasuredValue(name, value, limits, band.holds(value) if limits else None, band.about))
    return Verdict(tuple(values), applies)
