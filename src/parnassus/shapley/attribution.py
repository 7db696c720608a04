"""Attributions: a prediction as a base value and a part for each feature (book eqs. 17.1-17.2, 17.7-17.8)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.shapley.adjustment import adjusted
from parnassus.shapley.coalitions import Asked, drawn_sets
from parnassus.shapley.game import MOST, members
from parnassus.shapley.kernel_shap import Pairs, Solver
from parnassus.shapley.masking import MeanOfGames, ValueFunction, as_mean
from parnassus.shapley.model import ModelError, Rows, as_rows
from parnassus.shapley.values import Estimate, shapley_values, widened

NUMBERS = 2**22
"""Worths that are kept at once, of every output: rows and background rows are taken in portions of that size."""
COMPANY, TINY = 0.02, 1e-6
"""By how much an answer may change with the rows that are asked at the same time, as a share or at all: by rounding."""


@dataclass(frozen=True)
class Attribution:
    """f(x) = base + Σ_j values_j, for every row and output, with the standard errors of the values (book eq. 17.2)."""

    base: Float[Tensor, "rows outputs"]
    values: Float[Tensor, "rows outputs players"]
    errors: Float[Tensor, "rows outputs players"]
    coalitions: int

    @property
    def prediction(self) -> Float[Tensor, "rows outputs"]:
        """What the model says of each row: the parts sum to it exactly (local accuracy)."""
        return self.base + self.values.sum(-1)

    @property
    def importance(self) -> Float[Tensor, "outputs players"]:
        """Over all rows: the mean of |φ_j|."""
        return self.values.abs().mean(0)


def explain_exactly(value: ValueFunction, x: Rows) -> Attribution:
    """Shapley values of every row by all 2^M coalitions; M up to about 20 (book eq. 17.3)."""
    if value.players > MOST:
        raise ValueError(
            f"{value.players} features have 2^{value.players} coalitions; use explain, or group them: at most {MOST}"
        )
    x = as_rows(x)
    demand_steady(value, x)
    rows = x.split(max(1, 8 * NUMBERS >> value.players))
    return beneath([_exactly(value(some, members(value.players)).to(x.device)) for some in rows])


def _exactly(worth: Float[Tensor, "rows outputs coalitions"]) -> Attribution:
    values = shapley_values(worth - worth[..., :1])
    return Attribution(worth[..., 0], values, torch.zeros_like(values), worth.shape[-1])


def explain(
    value: ValueFunction,
    x: Rows,
    budget: int,
    *,
    solve: Solver = adjusted,
    generator: torch.Generator | None = None,
) -> Attribution:
    """Shapley values of every row from about `budget` coalitions, the same for all rows: Kernel SHAP (book sec. 17.4).

    Each row of a background is asked about coalitions of its own, so that their errors cancel in the mean. With a
    budget of 2^M or more values are exact; with one of less than 2M their errors are infinite.
    """
    if value.players <= MOST and budget >= 2**value.players:
        return explain_exactly(value, x)
    x = as_rows(x)
    demand_steady(value, x)
    games = as_mean(value)
    together = max(1, NUMBERS // (max(2, budget) * value.players))
    parts = [games.of(slice(start, start + together)) for start in range(0, games.others, together)]
    found = [_explained(part, x, budget, solve, generator) for part in parts]
    return mean_of(found, [part.others / games.others for part in parts])


def _explained(
    games: MeanOfGames, x: Tensor, budget: int, solve: Solver, generator: torch.Generator | None
) -> Attribution:
    """All rows against some of the background."""
    asked = drawn_sets(games.others, games.players, budget, generator=generator)
    whole = with_ends(asked.coalitions)
    rows = x.split(max(1, NUMBERS // whole[..., 0].numel()))
    return beneath([attributed(asked, games.each(some, whole), solve, x.device) for some in rows])


def attributed(
    asked: Asked, worth: Float[Tensor, "sets rows outputs count"], solve: Solver, device: torch.device
) -> Attribution:
    """The mean of many games from what was answered to each: nobody's worth first, everybody's last.

    Each game is estimated by itself, from coalitions drawn for it, so the variances of the mean add up.
    """
    sets, rows, outputs, count = worth.shape
    games = worth.flatten(1, 2)
    estimates = []
    some_sets = max(1, 4 * NUMBERS // (count * max(asked.coalitions.shape[-1], min(count // 2, 1024))))
    for some in torch.arange(sets).split(some_sets):
        own = Asked(asked.coalitions[some], asked.chance)
        estimates.append(solve(own, games[some, :, 1:-1], games[some, :, 0], games[some, :, -1]))
    found = Estimate(*(torch.cat(each) for each in zip(*estimates, strict=True)))
    errors = summed(found.errors, Asked(asked.coalitions[0], asked.chance), games) / sets
    return Attribution(
        worth[..., 0].mean(0).to(device),
        found.values.mean(0).unflatten(0, (rows, outputs)).to(device),
        errors.unflatten(0, (rows, outputs)).to(device),
        count,
    )


def summed(errors: Float[Tensor, "sets games players"], first: Asked, like: Tensor) -> Float[Tensor, "games players"]:
    """The error of a sum of independent values; the errors of each set are as free as those of the first are."""
    square = errors.square().sum(0)
    if errors.shape[-1] < 2 or not bool(square.isfinite().all()):
        return square.sqrt()
    as_many = square.square() / errors.pow(4).sum(0).clamp(min=1e-300)  # sets, if all have errors of one size
    return widened(square.sqrt(), as_many.clamp(min=1.0) * Pairs.of(first, like).freedom())


def with_ends(coalitions: Bool[Tensor, "*sets count players"]) -> Bool[Tensor, "*sets more players"]:
    """Nobody, these, and everybody."""
    nobody = coalitions.new_zeros(*coalitions.shape[:-2], 1, coalitions.shape[-1])
    return torch.cat([nobody, coalitions, ~nobody], -2)


def beneath(blocks: Sequence[Attribution]) -> Attribution:
    """Attributions of different rows as one."""
    base, values, errors = (
        torch.cat(each) for each in zip(*((block.base, block.values, block.errors) for block in blocks), strict=True)
    )
    return Attribution(base, values, errors, max(block.coalitions for block in blocks))


def mean_of(parts: Sequence[Attribution], shares: Sequence[float]) -> Attribution:
    """The attribution to a mean of independent games, of which each has a share."""
    pairs = list(zip(parts, shares, strict=True))
    return Attribution(
        torch.stack([share * part.base for part, share in pairs]).sum(0),
        torch.stack([share * part.values for part, share in pairs]).sum(0),
        torch.stack([share * part.errors for part, share in pairs]).square().sum(0).sqrt(),
        max(part.coalitions for part in parts),
    )


def of_repeats(repeats: Sequence[Attribution]) -> Attribution:
    """The mean of independent estimates of the same attribution, and the standard errors that their spread shows.

    These are of all that is left to chance in each: which coalitions were asked, and how their worths were guessed.
    """
    if len(repeats) < 2:
        raise ValueError(f"a spread is seen between two attributions at least; got {len(repeats)}")
    base, values = (torch.stack(each) for each in zip(*((one.base, one.values) for one in repeats), strict=True))
    errors = widened(values.std(0) / len(repeats) ** 0.5, len(repeats) - 1)
    return Attribution(base.mean(0), values.mean(0), errors, max(one.coalitions for one in repeats))


def demand_steady(value: ValueFunction, x: Float[Tensor, "rows features"]) -> None:
    """Refuse a model that answers one question in two ways, or otherwise in company: no parts sum to both."""
    everything = torch.ones(1, value.players, dtype=torch.bool)
    first, second = value(x[:1], everything), value(x[:1], everything)
    if not torch.equal(first, second):
        raise ModelError(
            f"the model is not deterministic: asked twice about one row it said {first.flatten()[0]:.6g} and "
            f"{second.flatten()[0]:.6g}; fix its seed, or average it"
        )
    again, nobody = value(x[:1], torch.cat([everything, ~everything])).split(1, -1)
    wrong = (again - first).abs() > TINY + COMPANY * torch.maximum(first.abs(), nobody.abs())
    if bool(wrong.any()):
        raise ModelError(
            "the model's answer to a row depends on the rows that it is asked with: alone it said "
            f"{first[wrong][0]:.6g}, in company {again[wrong][0]:.6g}; it must answer each by itself, as in evaluation"
        )
