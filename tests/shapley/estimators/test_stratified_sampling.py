"""Stratified sampling against enumeration: windows of a circle, allocations, efficiency, errors."""

from functools import partial

import pytest
import torch
from torch import Tensor

from parnassus.probability import standard_normal
from parnassus.shapley.estimators.stratified_sampling import (
    allocate_samples,
    circular_windows,
    contributions_around,
    equal_allocation,
    neyman_allocation,
    random_circles,
    stratified_sampling,
)
from parnassus.shapley.games.cooperative_games import all_coalitions, characteristic_function, coalition_sizes
from parnassus.shapley.games.shapley_values import shapley_values


def random_game(players: int, seed: int = 0) -> Tensor:
    return standard_normal(2**players, seed=seed)


def test_circular_windows_are_consecutive_players() -> None:
    circle = torch.tensor([2, 0, 3, 1])
    windows = [row.nonzero()[:, 0].tolist() for row in circular_windows(circle, 2)]
    assert windows == [[0, 2], [0, 3], [1, 3], [1, 2]]


def test_contributions_average_both_neighbourhoods_on_the_circle() -> None:
    worth, circle, size = random_game(5), torch.tensor([3, 0, 4, 1, 2]), 2
    expected = []
    for player in range(5):
        position = circle.tolist().index(player)
        after, before = ([int(circle[(position + step * k) % 5]) for k in range(1, size + 1)] for step in (1, -1))
        contributions = [
            worth[sum(2**o for o in others) + 2**player] - worth[sum(2**o for o in others)]
            for others in (after, before)
        ]
        expected.append(float(sum(contributions) / 2))
    result = contributions_around(characteristic_function(worth), size, circle[None])[0]
    target = torch.tensor(expected, dtype=torch.float64)
    assert torch.allclose(result, target - target.mean())


@pytest.mark.parametrize("allocate", [neyman_allocation, equal_allocation])
def test_estimates_are_nearly_unbiased_with_correct_standard_errors(allocate: object) -> None:
    worth, generator = random_game(6), torch.Generator().manual_seed(0)
    exact = shapley_values(worth - worth[0])
    assert callable(allocate)
    estimates = [
        stratified_sampling(characteristic_function(worth), 6, 250, allocation=allocate, generator=generator)
        for _ in range(100)
    ]
    errors = torch.stack([estimate.values - exact for estimate in estimates])
    reported = torch.stack([estimate.errors for estimate in estimates]).square().mean(0).sqrt()
    assert bool(((errors.mean(0) / (errors.std(0) / 100**0.5)).abs() < 4).all())
    assert torch.allclose(errors.square().mean(0).sqrt(), reported, rtol=0.3)


def test_values_of_batched_games_are_efficient() -> None:
    table = torch.stack([random_game(5, seed) for seed in range(4)]).view(2, 2, -1)
    result = stratified_sampling(characteristic_function(table), 5, 90, generator=torch.Generator().manual_seed(0))
    assert result.values.shape == result.errors.shape == (2, 2, 5)
    assert torch.allclose(result.values.sum(-1), table[..., -1] - table[..., 0], atol=1e-12)


@pytest.mark.parametrize("players", [1, 2, 3])
def test_few_players_are_exact(players: int) -> None:
    worth = random_game(players)
    result = stratified_sampling(characteristic_function(worth), players, 60)
    assert torch.allclose(result.values, shapley_values(worth - worth[0]))
    assert float(result.errors.max()) < 1e-12


def test_samples_are_allocated_to_varying_strata() -> None:
    noisy = random_game(6).where(
        (coalition_sizes(6) == 2) | (coalition_sizes(6) == 3), all_coalitions(6).double().sum(1)
    )
    sizes: list[Tensor] = []

    def worth(coalitions: Tensor) -> Tensor:
        sizes.append(coalitions.sum(1))
        return characteristic_function(noisy)(coalitions)

    stratified_sampling(worth, 6, 600, generator=torch.Generator().manual_seed(0))
    counts = torch.cat(sizes).bincount(minlength=7)
    assert int(counts[3]) > 4 * int(counts[5])


def test_allocations_are_proportional_and_complete() -> None:
    minimum = torch.tensor([2, 2, 2])
    counts = allocate_samples(torch.tensor([0.0, 1.0, 3.0]), minimum, 30)
    assert counts.tolist()[0] == 2
    assert int(counts.sum()) == 30
    assert counts.tolist()[2] > 2 * counts.tolist()[1]
    assert allocate_samples(torch.zeros(3) + 1, minimum, 6).tolist() == [2, 2, 2]
    assert neyman_allocation(torch.zeros(3)).tolist() == [1, 1, 1]


def test_random_circles_continue_the_sequence() -> None:
    assert torch.equal(random_circles(6, range(3, 8), 1), random_circles(6, range(8), 1)[3:])


def test_insufficient_budget_raises_value_error() -> None:
    with pytest.raises(ValueError, match="two circles of each size, here 108 coalitions of 6 players; got budget=107"):
        stratified_sampling(characteristic_function(random_game(6)), 6, 107)


def test_budget_is_not_exceeded() -> None:
    evaluations = 0

    def worth(coalitions: Tensor) -> Tensor:
        nonlocal evaluations
        evaluations += len(coalitions)
        return characteristic_function(random_game(6))(coalitions)

    for budget in (108, 200, 431):
        evaluations = 0
        partial(stratified_sampling, worth, 6, budget)()
        assert evaluations <= budget + 2
