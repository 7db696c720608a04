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
class Guess:
    values: Tensor
    errors: Tensor
    count: int


def guesses(errors_at_one: float, seen: list[int]) -> Callable[[int], Guess]:
    def grow(count: int) -> Guess:
        seen.append(count)
        return Guess(torch.tensor([0.0, 4.0]), torch.tensor([0.1, 1.0]) * errors_at_one / count**0.5, count)

    return grow


def test_it_stops_at_the_error_and_hardly_later() -> None:
    seen: list[int] = []
    found = estimate_to_tolerance(
        guesses(10.0, seen), 0.1, first_budget=100, max_budget=10**6
    )  # 10 000 questions are needed
    assert max_standard_error(found) <= 0.1
    assert found.count < 1.2 * 10_000
    assert all(later <= 2 * earlier for earlier, later in pairwise(seen))


def test_it_ends_with_the_budget() -> None:
    seen: list[int] = []
    found = estimate_to_tolerance(guesses(10.0, seen), 0.1, first_budget=100, max_budget=900)
    assert found.count == seen[-1] == 900
    assert max_standard_error(found) > 0.1


def test_one_round_may_do() -> None:
    seen: list[int] = []
    estimate_to_tolerance(guesses(0.9, seen), 0.1, first_budget=100, max_budget=900)
    assert seen == [100]


def test_a_nan_never_suffices() -> None:
    seen: list[int] = []
    estimate_to_tolerance(guesses(float("nan"), seen), 0.1, first_budget=100, max_budget=900)
    assert seen == [100, 200, 400, 800, 900]


def test_a_share_knows_no_unit() -> None:
    one, other = (Guess(scale * torch.tensor([0.0, 4.0]), scale * torch.tensor([0.1, 0.2]), 1) for scale in (1.0, 1e6))
    assert max_relative_error(one) == pytest.approx(0.05)
    assert max_relative_error(other) == pytest.approx(0.05)
    assert max_relative_error(Guess(torch.ones(2), torch.zeros(2), 1)) == 0.0
    assert max_relative_error(Guess(torch.ones(2), torch.ones(2), 1)) == float("inf")
    assert (
        estimate_to_tolerance(
            guesses(10.0, []), 0.1, first_budget=1, max_budget=10**6, criterion=max_relative_error
        ).count
        < 1_000
    )


def test_no_coalition_is_evaluated_twice() -> None:
    table, asked = torch.arange(3 * 16.0).view(3, 16), []

    def worth(coalitions: Tensor) -> Tensor:
        asked.append(len(coalitions))
        return characteristic_function(table)(coalitions)

    remembered = CachedGame(worth)
    source = torch.Generator().manual_seed(0)
    for _ in range(5):
        coalitions = torch.rand(12, 4, generator=source) < 0.5
        assert torch.equal(remembered(coalitions), characteristic_function(table)(coalitions))
    assert sum(asked) == remembered.evaluations <= 16


def test_coalitions_of_many_players_are_distinguished() -> None:
    coalitions = torch.eye(100, dtype=torch.bool)
    remembered = CachedGame(lambda c: c.double() @ torch.arange(100.0, dtype=torch.float64))
    assert remembered(coalitions).tolist() == list(range(100))
    assert remembered(coalitions.flip(0)).tolist() == list(range(99, -1, -1))


def test_wrong_tolerances_are_rejected() -> None:
    with pytest.raises(ValueError, match="must be positive; got tolerance=0"):
        estimate_to_tolerance(guesses(1.0, []), 0.0, first_budget=1, max_budget=2)
    with pytest.raises(ValueError, match="first_budget=5, max_budget=2"):
        estimate_to_tolerance(guesses(1.0, []), 0.1, first_budget=5, max_budget=2)
