"""Sequential sampling: when it stops, with how many evaluations, none twice."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from parnassus.shapley.estimators.stopping import (
    CachedGame,
    estimate_to_tolerance,
    max_relative_error,
    max_standard_error,
)
from parnassus.shapley.games.cooperative_games import characteristic_function


@dataclass(frozen=True)
class Estimate:
    values: Tensor
    errors: Tensor
    count: int


def growing_estimate(errors_at_one: float, budgets: list[int]) -> Callable[[int], Estimate]:
    def grow(count: int) -> Estimate:
        budgets.append(count)
        return Estimate(torch.tensor([0.0, 4.0]), torch.tensor([0.1, 1.0]) * errors_at_one / count**0.5, count)

    return grow


def test_sampling_stops_soon_after_the_tolerance() -> None:
    budgets: list[int] = []
    # 10 000 evaluations are needed
    result = estimate_to_tolerance(growing_estimate(10.0, budgets), 0.1, first_budget=100, max_budget=10**6)
    assert max_standard_error(result) <= 0.1
    assert result.count < 1.2 * 10_000
    assert all(later <= 2 * earlier for earlier, later in pairwise(budgets))


def test_sampling_stops_at_the_budget() -> None:
    budgets: list[int] = []
    result = estimate_to_tolerance(growing_estimate(10.0, budgets), 0.1, first_budget=100, max_budget=900)
    assert result.count == budgets[-1] == 900
    assert max_standard_error(result) > 0.1


def test_one_round_can_suffice() -> None:
    budgets: list[int] = []
    estimate_to_tolerance(growing_estimate(0.9, budgets), 0.1, first_budget=100, max_budget=900)
    assert budgets == [100]


def test_nan_errors_exhaust_the_budget() -> None:
    budgets: list[int] = []
    estimate_to_tolerance(growing_estimate(float("nan"), budgets), 0.1, first_budget=100, max_budget=900)
    assert budgets == [100, 200, 400, 800, 900]


def test_relative_error_is_scale_invariant() -> None:
    unscaled, scaled = (
        Estimate(scale * torch.tensor([0.0, 4.0]), scale * torch.tensor([0.1, 0.2]), 1) for scale in (1.0, 1e6)
    )
    assert max_relative_error(unscaled) == pytest.approx(0.05)
    assert max_relative_error(scaled) == pytest.approx(0.05)
    assert max_relative_error(Estimate(torch.ones(2), torch.zeros(2), 1)) == 0.0
    assert max_relative_error(Estimate(torch.ones(2), torch.ones(2), 1)) == float("inf")
    assert (
        estimate_to_tolerance(
            growing_estimate(10.0, []), 0.1, first_budget=1, max_budget=10**6, criterion=max_relative_error
        ).count
        < 1_000
    )


def test_no_coalition_is_evaluated_twice() -> None:
    table, evaluated = torch.arange(3 * 16.0).view(3, 16), []

    def worth(coalitions: Tensor) -> Tensor:
        evaluated.append(len(coalitions))
        return characteristic_function(table)(coalitions)

    cached = CachedGame(worth)
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        coalitions = torch.rand(12, 4, generator=generator) < 0.5
        assert torch.equal(cached(coalitions), characteristic_function(table)(coalitions))
    assert sum(evaluated) == cached.evaluations <= 16


def test_coalitions_of_many_players_are_distinguished() -> None:
    coalitions = torch.eye(100, dtype=torch.bool)
    cached = CachedGame(lambda c: c.double() @ torch.arange(100.0, dtype=torch.float64))
    assert cached(coalitions).tolist() == list(range(100))
    assert cached(coalitions.flip(0)).tolist() == list(range(99, -1, -1))


def test_invalid_tolerances_raise_value_error() -> None:
    with pytest.raises(ValueError, match="must be positive; got tolerance=0"):
        estimate_to_tolerance(growing_estimate(1.0, []), 0.0, first_budget=1, max_budget=2)
    with pytest.raises(ValueError, match="first_budget=5, max_budget=2"):
        estimate_to_tolerance(growing_estimate(1.0, []), 0.1, first_budget=5, max_budget=2)
