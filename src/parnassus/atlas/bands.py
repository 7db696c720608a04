"""Bands: what a good run gives, shown beside what this one gave."""

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Band:
    """An interval in which a measured figure is expected, and what the figure is."""

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


def reported(about: str) -> Band:
    """A figure of which nothing is expected."""
    return Band(-inf, inf, about)
