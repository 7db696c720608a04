"""Permutation sampling against enumeration: balance, efficiency, standard errors."""

from functools import partial

import pytest
import torch
from torch import Tensor

from parnassus.shapley.estimators.estimate import Estimator, empty_and_grand_worth
from parnassus.shapley.estimators.permutation_sampling import (
    balanced_permutation_sampling,
    balanced_permutations,
    contributions_by_permutation,
    permutation_sampling,
    random_permutations,
)
from parnassus.shapley.games.cooperative_games import all_coalitions, characteristic_function
from parnassus.shapley.games.shapley_values import marginal_contributions, shapley_values

ESTIMATORS: list[Estimator] = [
    permutation_sampling,
    partial(permutation_sampling, antithetic=True),
    balanced_permutation_sampling,
    partial(balanced_permutation_sampling, antithetic=True),
]
NAMES = ["random", "mirrored", "balanced", "balanced and mirrored"]


def smooth_game(players: int, seed: int = 0) -> Tensor:
    source = torch.Generator().manual_seed(seed)
    hidden = torch.randn(players, 8, generator=source, dtype=torch.float64)
    return (all_coalitions(players).double() @ hidden).tanh() @ torch.randn(8, generator=source, dtype=torch.float64)


def test_balanced_orders_have_everybody_everywhere_equally_often() -> None:
    orders = balanced_permutations(5, 15, torch.Generator().manual_seed(0))
    for square in orders.split(5):
        assert torch.equal(square.sort(1).values, torch.arange(5).expand(5, 5))
        assert torch.equal(square.sort(0).values, torch.arange(5)[:, None].expand(5, 5))


def test_each_balanced_order_is_any_order_alike() -> None:
    source = torch.Generator().manual_seed(0)
    second = torch.stack([balanced_permutations(4, 4, source)[1] for _ in range(4_800)])
    counts = torch.unique(second, dim=0, return_counts=True)[1]
    assert len(counts) == 24
    assert float((counts - 200).square().sum() / 200) < 49.7  # chi square of 23 degrees, one in a thousand


@pytest.mark.parametrize("draw", [random_permutations, balanced_permutations])
def test_a_longer_list_begins_as_the_shorter_one(draw: object) -> None:
    assert callable(draw)
    long, short = (draw(7, count, torch.Generator().manual_seed(3)) for count in (30, 11))
    assert torch.equal(long[:11], short)


def test_arrivals_are_the_marginals_of_the_table() -> None:
    table = torch.stack([smooth_game(6, seed) for seed in range(3)])
    orders = random_permutations(6, 10, torch.Generator().manual_seed(0))
    found = contributions_by_permutation(
        characteristic_function(table), empty_and_grand_worth(characteristic_function(table), 6), orders
    )
    assert torch.allclose(found, torch.stack([marginal_contributions(each, orders) for each in table]))


@pytest.mark.parametrize("estimate", ESTIMATORS, ids=NAMES)
def test_no_bias_and_errors_as_said(estimate: Estimator) -> None:
    worth, source = smooth_game(6), torch.Generator().manual_seed(0)
    exact = shapley_values(worth - worth[0])
    found = [estimate(characteristic_function(worth), 6, 130, generator=source) for _ in range(300)]
    off = torch.stack([each.values - exact for each in found])
    said = torch.stack([each.errors for each in found]).square().mean().sqrt()
    assert bool(((off.mean(0) / (off.std(0) / 300**0.5)).abs() < 4).all())
    assert 0.6 < float(off.square().mean().sqrt() / said) < 1.15  # balanced orders are a little better than they say


@pytest.mark.parametrize("estimate", ESTIMATORS, ids=NAMES)
def test_parts_sum_up_whatever_the_budget(estimate: Estimator) -> None:
    table = torch.stack([smooth_game(7, seed) for seed in range(4)]).view(2, 2, -1)
    for budget in (24, 61, 200):
        found = estimate(characteristic_function(table), 7, budget, generator=torch.Generator().manual_seed(0))
        assert found.values.shape == found.errors.shape == (2, 2, 7)
        assert torch.allclose(found.values.sum(-1), table[..., -1] - table[..., 0], atol=1e-12)


def test_an_additive_game_is_known_at_once() -> None:
    parts = torch.tensor([3.0, -1.0, 0.0, 2.0], dtype=torch.float64)
    for estimate in ESTIMATORS:
        found = estimate(lambda coalitions: 5 + coalitions.double() @ parts, 4, 40)
        assert torch.allclose(found.values, parts)
        assert float(found.errors.max()) < 1e-12


def test_what_only_the_place_decides_is_known_by_balance() -> None:
    by_size = torch.tensor([0.0, 5.0, -3.0, 2.0, 9.0], dtype=torch.float64)
    found = balanced_permutation_sampling(lambda coalitions: by_size[coalitions.sum(1)], 4, 8 * 3)
    assert torch.allclose(found.values, torch.full((4,), 9 / 4, dtype=torch.float64))
    assert float(found.errors.max()) < 1e-12
    source = torch.Generator().manual_seed(0)
    rough = permutation_sampling(lambda coalitions: by_size[coalitions.sum(1)], 4, 8 * 3, generator=source)
    assert float(rough.errors.mean()) > 0.5


def test_one_player_gets_all() -> None:
    for estimate in ESTIMATORS:
        found = estimate(characteristic_function(torch.tensor([2.0, 7.0])), 1, 2)
        assert (found.values.tolist(), found.errors.tolist()) == ([5.0], [0.0])


def test_too_small_a_budget_is_rejected() -> None:
    with pytest.raises(ValueError, match="two permutations, here 10 coalitions of 6 players; got budget=9"):
        permutation_sampling(characteristic_function(smooth_game(6)), 6, 9)
    with pytest.raises(ValueError, match="two antithetic pairs, here 20"):
        balanced_permutation_sampling(characteristic_function(smooth_game(6)), 6, 19, antithetic=True)
    with pytest.raises(ValueError, match="players must be positive"):
        permutation_sampling(characteristic_function(torch.zeros(1)), 0, 9)
