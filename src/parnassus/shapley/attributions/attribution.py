"""Attributions f(x) = base value + Σ_j φ_j, exact or by Kernel SHAP (book eqs. 17.1-17.2, 17.7-17.8)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.shapley.attributions.model_adapters import ModelError, Rows, as_rows
from parnassus.shapley.attributions.value_functions import BackgroundAverage, ValueFunction, as_background_average
from parnassus.shapley.estimators.coalition_sampling import CoalitionSample, sample_coalition_sets
from parnassus.shapley.estimators.estimate import ShapleyEstimate, small_sample_errors
from parnassus.shapley.estimators.kernel_shap import KernelShapSolver, PairedRegression
from parnassus.shapley.estimators.regression_adjustment import regression_adjustment
from parnassus.shapley.games.cooperative_games import MAX_PLAYERS, all_coalitions
from parnassus.shapley.games.shapley_values import shapley_values

MAX_WORTHS = 2**22
"""Maximum number of coalition values held in memory, per output; rows and background rows are processed in batches."""
BATCH_RTOL, BATCH_ATOL = 0.02, 1e-6
"""Tolerances for the dependence of an output on the other rows of its batch, which is due to rounding."""


@dataclass(frozen=True)
class Attribution:
    """f(x) = base_values + Σ_j values_j for every row and output, with standard errors of the values (book eq. 17.2).

    `evaluations` counts the coalitions, or for gradient methods the inputs, evaluated per row.

    >>> values = torch.tensor([[[0.25, -0.5]]])
    >>> found = Attribution(torch.tensor([[0.5]]), values, torch.zeros(1, 1, 2), evaluations=4)
    >>> found.prediction
    tensor([[0.2500]])
    """

    base_values: Float[Tensor, "rows outputs"]
    values: Float[Tensor, "rows outputs players"]
    errors: Float[Tensor, "rows outputs players"]
    evaluations: int

    @property
    def prediction(self) -> Float[Tensor, "rows outputs"]:
        """The model's output for each row, to which the attributions sum exactly (local accuracy)."""
        return self.base_values + self.values.sum(-1)

    @property
    def importance(self) -> Float[Tensor, "outputs players"]:
        """Mean of |φ_j| over all rows."""
        return self.values.abs().mean(0)


def explain_exactly(value: ValueFunction, x: Rows) -> Attribution:
    """Shapley values of every row from all 2^M coalitions; M up to about 20 (book eq. 17.3)."""
    if value.players > MAX_PLAYERS:
        raise ValueError(
            f"exact values need at most {MAX_PLAYERS} features, {value.players} have 2^{value.players} coalitions; "
            "use explain, or group features"
        )
    x = deterministic_rows(value, x)
    batches = x.split(max(1, 8 * MAX_WORTHS >> value.players))
    return concatenate_rows(
        [_exact_attribution(value(batch, all_coalitions(value.players)).to(x.device)) for batch in batches]
    )


def _exact_attribution(worth: Float[Tensor, "rows outputs coalitions"]) -> Attribution:
    values = shapley_values(worth - worth[..., :1])
    return Attribution(worth[..., 0], values, torch.zeros_like(values), worth.shape[-1])


def explain(
    value: ValueFunction,
    x: Rows,
    budget: int,
    *,
    solver: KernelShapSolver = regression_adjustment,
    generator: torch.Generator | None = None,
) -> Attribution:
    """Kernel SHAP: Shapley values of every row from about `budget` coalitions, shared by all rows (book sec. 17.4).

    Each background row has its own coalitions, so that errors average out. With a budget of 2^M or more values are
    exact; with less than 2M standard errors are infinite.
    """
    if is_exhaustive_budget(budget, value.players):
        return explain_exactly(value, x)
    x = deterministic_rows(value, x)
    games = as_background_average(value)
    batch = max(1, MAX_WORTHS // (max(2, budget) * value.players))
    parts = [games.subset(slice(start, start + batch)) for start in range(0, games.background_size, batch)]
    found = [_explain_part(part, x, budget, solver, generator) for part in parts]
    return weighted_mean(found, [part.background_size / games.background_size for part in parts])


def _explain_part(
    games: BackgroundAverage, x: Tensor, budget: int, solver: KernelShapSolver, generator: torch.Generator | None
) -> Attribution:
    """The attribution of all rows with a part of the background."""
    sample = sample_coalition_sets(games.background_size, games.players, budget, generator=generator)
    coalitions = add_empty_and_grand(sample.coalitions)
    batches = x.split(max(1, MAX_WORTHS // coalitions[..., 0].numel()))
    return concatenate_rows(
        [average_over_sets(sample, games.per_background_row(batch, coalitions), solver, x.device) for batch in batches]
    )


def average_over_sets(
    sample: CoalitionSample,
    worth: Float[Tensor, "sets rows outputs count"],
    solver: KernelShapSolver,
    device: torch.device,
) -> Attribution:
    """The mean of one estimate per set of coalitions; the first worth is v(∅), the last v(N).

    The sets are sampled independently, so the variances of the estimates add.
    """
    sets, rows, outputs, count = worth.shape
    games = worth.flatten(1, 2)
    estimates = []
    sets_per_batch = max(1, 4 * MAX_WORTHS // (count * max(sample.coalitions.shape[-1], min(count // 2, 1024))))
    for batch in torch.arange(sets).split(sets_per_batch):
        part = CoalitionSample(sample.coalitions[batch], sample.inclusion_probability)
        estimates.append(solver(part, games[batch, :, 1:-1], games[batch, :, 0], games[batch, :, -1]))
    found = ShapleyEstimate(*(torch.cat(each) for each in zip(*estimates, strict=True)))
    first = CoalitionSample(sample.coalitions[0], sample.inclusion_probability)
    errors = error_of_sum(found.errors, first, games) / sets
    return Attribution(
        worth[..., 0].mean(0).to(device),
        found.values.mean(0).unflatten(0, (rows, outputs)).to(device),
        errors.unflatten(0, (rows, outputs)).to(device),
        count,
    )


def error_of_sum(
    errors: Float[Tensor, "sets games players"], first: CoalitionSample, like: Tensor
) -> Float[Tensor, "games players"]:
    """The error of a sum of independent estimates, each with the degrees of freedom of the first set."""
    square = errors.square().sum(0)
    if errors.shape[-1] < 2 or not bool(square.isfinite().all()):
        return square.sqrt()
    effective_sets = square.square() / errors.pow(4).sum(0).clamp(
        min=1e-300
    )  # equals the number of sets if their errors are equal
    degrees_of_freedom = PairedRegression.build(first, like).degrees_of_freedom()
    return small_sample_errors(square.sqrt(), effective_sets.clamp(min=1.0) * degrees_of_freedom)


def add_empty_and_grand(coalitions: Bool[Tensor, "*sets count players"]) -> Bool[Tensor, "*sets more players"]:
    """The empty coalition, the given ones, and the grand coalition."""
    empty = coalitions.new_zeros(*coalitions.shape[:-2], 1, coalitions.shape[-1])
    return torch.cat([empty, coalitions, ~empty], -2)


def concatenate_rows(blocks: Sequence[Attribution]) -> Attribution:
    """The concatenated attributions of different rows."""
    base_values, values, errors = (
        torch.cat(each)
        for each in zip(*((block.base_values, block.values, block.errors) for block in blocks), strict=True)
    )
    return Attribution(base_values, values, errors, max(block.evaluations for block in blocks))


def weighted_mean(parts: Sequence[Attribution], weights: Sequence[float]) -> Attribution:
    """The attribution of a weighted mean of independently estimated games."""
    pairs = list(zip(parts, weights, strict=True))
    return Attribution(
        torch.stack([weight * part.base_values for part, weight in pairs]).sum(0),
        torch.stack([weight * part.values for part, weight in pairs]).sum(0),
        torch.stack([weight * part.errors for part, weight in pairs]).square().sum(0).sqrt(),
        max(part.evaluations for part in parts),
    )


def average_repeats(repeats: Sequence[Attribution]) -> Attribution:
    """The mean of independent estimates of one attribution, with standard errors from their variance.

    These contain all randomness of an estimate: the sampled coalitions and the sampled unknown features.
    """
    if len(repeats) < 2:
        raise ValueError(f"repeats must be at least two attributions; got {len(repeats)}")
    base_values, values = (
        torch.stack(each) for each in zip(*((one.base_values, one.values) for one in repeats), strict=True)
    )
    errors = small_sample_errors(values.std(0) / len(repeats) ** 0.5, len(repeats) - 1)
    return Attribution(base_values.mean(0), values.mean(0), errors, max(one.evaluations for one in repeats))


def is_exhaustive_budget(budget: int, players: int) -> bool:
    """Whether the budget suffices for all 2^M coalitions, so that exact values cost no more than estimates."""
    return players <= MAX_PLAYERS and budget >= 2**players


def deterministic_rows(value: ValueFunction, x: Rows) -> Float[Tensor, "rows features"]:
    """The rows as a tensor; a ValueError if the value function is random."""
    rows = as_rows(x)
    check_deterministic(value, rows)
    return rows


def check_deterministic(value: ValueFunction, x: Float[Tensor, "rows features"]) -> None:
    """Reject a model whose output for a row is random or depends on the other rows of the batch."""
    grand = torch.ones(1, value.players, dtype=torch.bool)
    first, second = value(x[:1], grand), value(x[:1], grand)
    if not torch.equal(first, second):
        raise ModelError(
            f"the model must be deterministic; two evaluations of one row gave {first.flatten()[0]:.6g} and "
            f"{second.flatten()[0]:.6g}: fix its seed, or average it"
        )
    again, empty = value(x[:1], torch.cat([grand, ~grand])).split(1, -1)
    differs = (again - first).abs() > BATCH_ATOL + BATCH_RTOL * torch.maximum(first.abs(), empty.abs())
    if bool(differs.any()):
        raise ModelError(
            "the model's output for a row must not depend on the other rows of its batch, as in evaluation mode; "
            f"alone it is {first[differs][0]:.6g}, in a batch {again[differs][0]:.6g}"
        )
