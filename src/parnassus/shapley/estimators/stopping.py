"""Sequential sampling: rounds of growing budget until standard errors reach a tolerance (book sec. 17.4)."""

from collections.abc import Callable
from math import ceil
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.errors import check_positive
from parnassus.shapley.games.cooperative_games import CharacteristicFunction


@runtime_checkable
class HasErrors(Protocol):
    """An object with standard errors: a ShapleyEstimate or an Attribution."""

    @property
    def values(self) -> Float[Tensor, "*games players"]: ...

    @property
    def errors(self) -> Float[Tensor, "*games players"]: ...


EstimateType = TypeVar("EstimateType", bound=HasErrors)


def max_standard_error(found: HasErrors) -> float:
    """The largest standard error, of any player in any game."""
    return float(found.errors.max()) if found.errors.numel() else 0.0


def max_relative_error(found: HasErrors) -> float:
    """The largest ratio of a standard error to the range of its game's values; independent of units."""
    if not found.errors.numel():
        return 0.0
    value_range = found.values.amax(-1, keepdim=True) - found.values.amin(-1, keepdim=True)
    ratio = found.errors / value_range
    return float(ratio.nan_to_num(0.0, posinf=float("inf")).max())  # 0 / 0 for equal values without error


def estimate_to_tolerance(
    estimate: Callable[[int], EstimateType],
    tolerance: float,
    *,
    first_budget: int,
    max_budget: int,
    criterion: Callable[[HasErrors], float] = max_standard_error,
) -> EstimateType:
    """The first estimate with criterion ≤ `tolerance`, or that of `max_budget`.

    `estimate(budget)` returns the estimate from `budget` evaluations in total, and must reuse earlier ones. Errors
    decrease as 1/√budget, so each round multiplies the budget by (criterion / tolerance)², at most by 2, since the
    first errors are imprecise. The tolerance was reached if `criterion(result) <= tolerance`.
    """
    check_positive(tolerance=tolerance)
    if not 0 < first_budget <= max_budget:
        raise ValueError(
            f"first_budget must be positive and at most max_budget; got first_budget={first_budget}, "
            f"max_budget={max_budget}"
        )
    budget = first_budget
    found = estimate(budget)
    while not criterion(found) <= tolerance and budget < max_budget:  # also continues after a NaN
        ratio = (criterion(found) / tolerance) ** 2
        budget = min(max_budget, ceil(budget * (max(1.1, 1.05 * ratio) if ratio < 1.9 else 2.0)))
        found = estimate(budget)
    return found


class CachedGame:
    """A game that evaluates each coalition once, so that growing rounds evaluate only new coalitions."""

    def __init__(self, worth: CharacteristicFunction) -> None:
        self.worth = worth
        self._positions: dict[bytes, int] = {}
        self._known: list[Tensor] = []

    @property
    def evaluations(self) -> int:
        """Number of distinct coalitions evaluated so far."""
        return len(self._positions)

    def __call__(self, coalitions: Bool[Tensor, "count players"]) -> Float[Tensor, "*games count"]:
        keys = [row.tobytes() for row in np.packbits(coalitions.cpu().numpy(), axis=1)]
        new = {key: index for index, key in reversed(list(enumerate(keys))) if key not in self._positions}
        if new:
            self._positions |= {key: len(self._positions) + index for index, key in enumerate(new)}
            self._known = [torch.cat([*self._known, self.worth(coalitions[list(new.values())])], -1)]
        return self._known[0][..., [self._positions[key] for key in keys]]
