"""Stratified sampling against enumeration: windows of a circle, allocations, efficiency, errors."""

from functools import partial

import pytest
import torch
from torch import Tensor

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
    return torch.randn(2**players, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_windows_are_players_in_a_row() -> None:
    circle = torch.tensor([2, 0, 3, 1])
    found = [row.nonzero()[:, 0].tolist() for row in circular_windows(circle, 2)]
    assert found == [[0, 2], [0, 3], [1, 3], [1, 2]]


def test_a_circle_tells_of_everybody_twice() -> None:
    worth, circle, size = random_game(5), torch.tensor([3, 0, 4, 1, 2]), 2
    expected = []
    for player in range(5):
        seat = circle.tolist().index(player)
        after, before = ([int(circle[(seat + step * k) % 5]) for k in range(1, size + 1)] for step in (1, -1))
        adds = [
            worth[sum(2**o for o in others) + 2**player] - worth[sum(2**o for o in others)]
            for others in (after, before)
        ]
        expected.append(float(sum(adds) / 2))
    found = contributions_around(characteristic_function(worth), size, circle[None])[0]
    right = torch.tensor(expected, dtype=torch.float64)
    assert torch.allclose(found, right - right.mean())


@pytest.mark.parametrize("allocate", [neyman_allocation, equal_allocation])
def test_errors_are_as_said_and_there_is_hardly_a_bias(allocate: object) -> None:
    worth, source = random_game(6), torch.Generator().manual_seed(0)
    exact = shapley_values(worth - worth[0])
    assert callable(allocate)
    found = [
        stratified_sampling(characteristic_function(worth), 6, 250, allocation=allocate, generator=source)
        for _ in range(100)
    ]
    off = torch.stack([each.values - exact for each in found])
    said = torch.stack([each.errors for each in found]).square().mean(0).sqrt()
    assert bool(((off.mean(0) / (off.std(0) / 100**0.5)).abs() < 4).all())
    assert torch.allclose(off.square().mean(0).sqrt(), said, rtol=0.3)


def test_parts_sum_up_for_many_games() -> None:
    table = torch.stack([random_game(5, seed) for seed in range(4)]).view(2, 2, -1)
    found = stratified_sampling(characteristic_function(table), 5, 90, generator=torch.Generator().manual_seed(0))
    assert found.values.shape == found.errors.shape == (2, 2, 5)
    assert torch.allclose(found.values.sum(-1), table[..., -1] - table[..., 0], atol=1e-12)


@pytest.mark.parametrize("players", [1, 2, 3])
def test_few_players_are_certain(players: int) -> None:
    worth = random_game(players)
    found = stratified_sampling(characteristic_function(worth), players, 60)
    assert torch.allclose(found.values, shapley_values(worth - worth[0]))
    assert float(found.errors.max()) < 1e-12


def test_samples_go_where_it_varies() -> None:
    noisy = random_game(6).where(
        (coalition_sizes(6) == 2) | (coalition_sizes(6) == 3), all_coalitions(6).double().sum(1)
    )
    asked: list[Tensor] = []

    def worth(coalitions: Tensor) -> Tensor:
        asked.append(coalitions.sum(1))
        return characteristic_function(noisy)(coalitions)

    stratified_sampling(worth, 6, 600, generator=torch.Generator().manual_seed(0))
    counts = torch.cat(asked).bincount(minlength=7)
    assert int(counts[3]) > 4 * int(counts[5])


def test_shares_are_kept_and_none_is_lost() -> None:
    least = torch.tensor([2, 2, 2])
    counts = allocate_samples(torch.tensor([0.0, 1.0, 3.0]), least, 30)
    assert counts.tolist()[0] == 2
    assert int(counts.sum()) == 30
    assert counts.tolist()[2] > 2 * counts.tolist()[1]
    assert allocate_samples(torch.zeros(3) + 1, least, 6).tolist() == [2, 2, 2]
    assert neyman_allocation(torch.zeros(3)).tolist() == [1, 1, 1]


def test_circles_go_on_where_they_ended() -> None:
    assert torch.equal(random_circles(6, range(3, 8), 1), random_circles(6, range(8), 1)[3:])


def test_too_small_a_budget_is_rejected() -> None:
    with pytest.raises(ValueError, match="two circles of each size, here 108 coalitions of 6 players; got budget=107"):
        stratified_sampling(characteristic_function(random_game(6)), 6, 107)


def test_the_least_budget_is_kept() -> None:
    asked = 0

    def worth(coalitions: Tensor) -> Tensor:
        nonlocal asked
        asked += len(coalitions)
        return characteristic_function(random_game(6))(coalitions)

    for budget in (108, 200, 431):
        asked = 0
        partial(stratified_sampling, worth, 6, budget)()
        assert asked <= budget + 2
