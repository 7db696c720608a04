"""Bands: what a good run gives, shown beside what this one gave."""

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Band:
    """An interval in which a measured figure is expected."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high  # False for NaN

    def __str__(self) -> str:
        if self.low == -inf:
            return f"≤ {self.high:g}"
        if self.high == inf:
            return f"≥ {self.low:g}"
        return f"{self.low:g} … {self.high:g}"


def at_most(bound: float) -> Band:
    return Band(-inf, bound)


def at_least(bound: float) -> Band:
    return Band(bound, inf)


def between(low: float, high: float) -> Band:
    if not low <= high:
        raise ValueError(f"a band needs low ≤ high; got low={low}, high={high}")
    return Band(low, high)
