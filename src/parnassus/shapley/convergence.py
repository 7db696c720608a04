"""Kernel SHAP that asks until its standard errors are as small as is wished (book sec. 17.4; Covert and Lee 2021)."""

from collections.abc import Callable

import torch
from torch import Tensor

from parnassus.shapley.adjustment import adjusted
from parnassus.shapley.attribution import (
    NUMBERS,
    Attribution,
    attributed,
    beneath,
    demand_steady,
    explain_exactly,
    with_ends,
)
from parnassus.shapley.coalitions import Asked, drawn_sets
from parnassus.shapley.game import MOST
from parnassus.shapley.kernel_shap import Solver
from parnassus.shapley.masking import MeanOfGames, ValueFunction, as_mean
from parnassus.shapley.model import Rows, as_rows
from parnassus.shapley.stopping import Judged, largest_error, until


def explain_until(
    value: ValueFunction,
    x: Rows,
    error: float,
    *,
    most: int,
    judge: Callable[[Judged], float] = largest_error,
    solve: Solver = adjusted,
    generator: torch.Generator | None = None,
) -> Attribution:
    """Shapley values of every row from as many coalitions as it takes until `judge` finds an error of at most `error`.

    `largest_error` looks at the largest standard error, `largest_share` at how large it is beside the spread of the
    values. Coalitions are added to those that were asked, none twice. From `most` on nothing more is asked: whether the
    wish was met is `judge(found) <= error`. Many rows are taken in portions, and an easy portion is asked about less.
    """
    all_of_them = 2**value.players
    if value.players <= MOST and all_of_them <= 4 * value.players:
        return explain_exactly(value, x)
    x = as_rows(x)
    demand_steady(value, x)
    games, rows = as_mean(value), []
    for some in x.split(max(1, 8 * NUMBERS // (games.others * most))):
        growing = Growing(games, some, solve, generator)
        first = min(most, 4 * value.players)
        rows.append(until(growing, error, first=first, most=min(most, all_of_them), judge=judge))
    return beneath(rows)


class Growing:
    """An attribution from ever more coalitions: what was asked is kept, and only what is new is asked."""

    def __init__(self, games: MeanOfGames, x: Tensor, solve: Solver, generator: torch.Generator | None) -> None:
        self.games, self.x, self.solve, self.generator = games, x, solve, generator
        self.asked: Asked | None = None
        self.worth = games.each(x, with_ends(torch.zeros(games.others, 0, games.players, dtype=torch.bool)))

    def __call__(self, count: int) -> Attribution:
        """From about `count` coalitions in all."""
        old = 0 if self.asked is None else len(self.asked.chance) // 2
        self.asked = drawn_sets(self.games.others, self.games.players, count, kept=self.asked, generator=self.generator)
        length = len(self.asked.chance)
        if length > 2 * old:
            new = self.games.each(self.x, self.asked.coalitions[:, old : length - old])
            front, back = self.worth.tensor_split([old + 1], -1)  # complements stand at equal distances from both ends
            self.worth = torch.cat([front, new, back], -1)
        return attributed(self.asked, self.worth, self.solve, self.x.device)
