"""Attributions by any estimator that asks about some coalitions, or until they are exact enough (book sec. 17.3)."""

from typing import Protocol, runtime_checkable

import torch

from parnassus.shapley.attribution import Attribution, demand_steady, explain_exactly
from parnassus.shapley.game import MOST, Worth, members
from parnassus.shapley.masking import ValueFunction
from parnassus.shapley.model import Rows, as_rows
from parnassus.shapley.stopping import Remembered, until
from parnassus.shapley.values import Estimate, shapley_values


@runtime_checkable
class Estimator(Protocol):
    """Shapley values and their errors from about `budget` coalitions: `by_orders`, `by_sizes`, `kernel_shap`."""

    def __call__(
        self, worth: Worth, players: int, budget: int, *, generator: torch.Generator | None = None
    ) -> Estimate: ...


def explain_by(
    estimator: Estimator,
    value: ValueFunction,
    x: Rows,
    budget: int,
    *,
    generator: torch.Generator | None = None,
) -> Attribution:
    """Shapley values of every row from at most `budget` coalitions, the same for all rows; exact once it is 2^M.

    No coalition is asked about twice, though it may count twice: `coalitions` says how many were asked.
    """
    if value.players <= MOST and budget >= 2**value.players:
        return explain_exactly(value, x)
    x = as_rows(x)
    demand_steady(value, x)
    worth = Remembered(lambda coalitions: value(x, coalitions))
    return _attributed(worth, estimator(worth, value.players, budget, generator=generator), value.players)


def explain_by_until(
    estimator: Estimator,
    value: ValueFunction,
    x: Rows,
    error: float,
    *,
    first: int,
    most: int,
    generator: torch.Generator | None = None,
) -> Attribution:
    """The same in rounds, from `first` to `most` coalitions, until no standard error is above `error`.

    Every round keeps the samples of those before; one that may ask about all 2^M coalitions does, and is exact. Whether
    the wish was met is told by the errors.
    """
    x = as_rows(x)
    demand_steady(value, x)
    worth = Remembered(lambda coalitions: value(x, coalitions))
    seed = int(torch.randint(2**62, (), generator=generator))

    def grow(budget: int) -> Attribution:
        if value.players <= MOST and budget >= 2**value.players:
            return _attributed(worth, _known(worth, value.players), value.players)
        source = torch.Generator().manual_seed(seed)
        return _attributed(worth, estimator(worth, value.players, budget, generator=source), value.players)

    return until(grow, error, first=first, most=most)


def _known(worth: Remembered, players: int) -> Estimate:
    """Values from all coalitions."""
    table = worth(members(players))
    values = shapley_values(table - table[..., :1])
    return Estimate(values, torch.zeros_like(values))


def _attributed(worth: Remembered, found: Estimate, players: int) -> Attribution:
    nobody = worth(torch.zeros(1, players, dtype=torch.bool))[..., 0]
    return Attribution(nobody, found.values, found.errors, worth.asked)
