"""Attributions by any estimator of Shapley values, with a fixed budget or to a tolerance (book sec. 17.3)."""

import torch

from parnassus.shapley.attributions.attribution import (
    Attribution,
    deterministic_rows,
    explain_exactly,
    is_exhaustive_budget,
)
from parnassus.shapley.attributions.model_adapters import Rows
from parnassus.shapley.attributions.value_functions import ValueFunction
from parnassus.shapley.estimators.estimate import Estimator, ShapleyEstimate
from parnassus.shapley.estimators.stopping import CachedGame, estimate_to_tolerance
from parnassus.shapley.games.cooperative_games import all_coalitions
from parnassus.shapley.games.shapley_values import shapley_values


def explain_with_estimator(
    estimator: Estimator,
    value: ValueFunction,
    x: Rows,
    budget: int,
    *,
    generator: torch.Generator | None = None,
) -> Attribution:
    """Shapley values of every row from at most `budget` coalitions, shared by all rows; exact from 2^M on.

    No coalition is evaluated twice, though the estimator may use it twice; `evaluations` is the number evaluated.
    """
    if is_exhaustive_budget(budget, value.players):
        return explain_exactly(value, x)
    x = deterministic_rows(value, x)
    worth = CachedGame(lambda coalitions: value(x, coalitions))
    return _as_attribution(worth, estimator(worth, value.players, budget, generator=generator), value.players)


def explain_with_estimator_to_tolerance(
    estimator: Estimator,
    value: ValueFunction,
    x: Rows,
    tolerance: float,
    *,
    first_budget: int,
    max_budget: int,
    generator: torch.Generator | None = None,
) -> Attribution:
    """Shapley values in rounds of `first_budget` to `max_budget` coalitions, until all standard errors ≤ `tolerance`.

    Every round reuses the samples of earlier ones; a round with a budget of 2^M is exact. The tolerance was reached
    if the reported errors do not exceed it.
    """
    x = deterministic_rows(value, x)
    worth = CachedGame(lambda coalitions: value(x, coalitions))
    seed = int(torch.randint(2**62, (), generator=generator))

    def attribution_for(budget: int) -> Attribution:
        if is_exhaustive_budget(budget, value.players):
            return _as_attribution(worth, _exact_estimate(worth, value.players), value.players)
        found = estimator(worth, value.players, budget, generator=torch.Generator().manual_seed(seed))
        return _as_attribution(worth, found, value.players)

    return estimate_to_tolerance(attribution_for, tolerance, first_budget=first_budget, max_budget=max_budget)


def _exact_estimate(worth: CachedGame, players: int) -> ShapleyEstimate:
    """Values from all coalitions."""
    table = worth(all_coalitions(players))
    values = shapley_values(table - table[..., :1])
    return ShapleyEstimate(values, torch.zeros_like(values))


def _as_attribution(worth: CachedGame, found: ShapleyEstimate, players: int) -> Attribution:
    empty = worth(torch.zeros(1, players, dtype=torch.bool))[..., 0]
    return Attribution(empty, found.values, found.errors, worth.evaluations)
