"""Kernel SHAP with a stopping rule: coalitions are added until errors reach a tolerance (book sec. 17.4).

Covert and Lee (2021) detect convergence from standard errors in the same way.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from parnassus.shapley.attributions.attribution import (
    MAX_WORTHS,
    Attribution,
    add_empty_and_grand,
    average_over_sets,
    check_deterministic,
    concatenate_rows,
    explain_exactly,
)
from parnassus.shapley.attributions.model_adapters import Rows, as_rows
from parnassus.shapley.attributions.value_functions import BackgroundAverage, ValueFunction, as_background_average
from parnassus.shapley.estimators.coalition_sampling import CoalitionSample, sample_coalition_sets
from parnassus.shapley.estimators.kernel_shap import KernelShapSolver
from parnassus.shapley.estimators.regression_adjustment import regression_adjustment
from parnassus.shapley.estimators.stopping import HasErrors, estimate_to_tolerance, max_standard_error
from parnassus.shapley.games.cooperative_games import MAX_PLAYERS


def explain_to_tolerance(
    value: ValueFunction,
    x: Rows,
    tolerance: float,
    *,
    max_coalitions: int,
    criterion: Callable[[HasErrors], float] = max_standard_error,
    solver: KernelShapSolver = regression_adjustment,
    generator: torch.Generator | None = None,
) -> Attribution:
    """Shapley values of every row, adding coalitions until `criterion` ≤ `tolerance`.

    `max_standard_error` is the largest standard error, `max_relative_error` the largest relative to the range of the
    values. Distinct coalitions are added to those already evaluated, up to `max_coalitions`; the tolerance was
    reached if `criterion(result) <= tolerance`. Many rows are processed in batches with separate stopping.
    """
    num_coalitions = 2**value.players
    if value.players <= MAX_PLAYERS and num_coalitions <= 4 * value.players:
        return explain_exactly(value, x)
    x = as_rows(x)
    check_deterministic(value, x)
    games = as_background_average(value)
    batch_size = max(1, 8 * MAX_WORTHS // (games.background_size * max_coalitions))
    return concatenate_rows(
        [
            estimate_to_tolerance(
                GrowingAttribution(games, batch, solver, generator),
                tolerance,
                first_budget=min(max_coalitions, 4 * value.players),
                max_budget=min(max_coalitions, num_coalitions),
                criterion=criterion,
            )
            for batch in x.split(batch_size)
        ]
    )


class GrowingAttribution:
    """An attribution from a growing sample of coalitions, of which only the new ones are evaluated."""

    def __init__(
        self, games: BackgroundAverage, x: Tensor, solver: KernelShapSolver, generator: torch.Generator | None
    ) -> None:
        self.games, self.x, self.solver, self.generator = games, x, solver, generator
        self.sample: CoalitionSample | None = None
        ends = add_empty_and_grand(torch.zeros(games.background_size, 0, games.players, dtype=torch.bool))
        self.worth = games.per_background_row(x, ends)

    def __call__(self, count: int) -> Attribution:
        """The attribution from about `count` coalitions in total."""
        old = 0 if self.sample is None else len(self.sample.inclusion_probability) // 2
        self.sample = sample_coalition_sets(
            self.games.background_size, self.games.players, count, previous=self.sample, generator=self.generator
        )
        length = len(self.sample.inclusion_probability)
        if length > 2 * old:
            new = self.games.per_background_row(self.x, self.sample.coalitions[:, old : length - old])
            front, back = self.worth.tensor_split([old + 1], -1)  # complements: equal distances from both ends
            self.worth = torch.cat([front, new, back], -1)
        return average_over_sets(self.sample, self.worth, self.solver, self.x.device)
