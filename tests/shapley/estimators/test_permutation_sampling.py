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
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(players, 8, generator=generator, dtype=torch.float64)
    return (all_coalitions(players).double() @ hidden).tanh() @ torch.randn(8, generator=generator, dtype=torch.float64)


def test_balanced_permutations_are_latin_squares() -> None:
    orders = balanced_permutations(5, 15, torch.Generator().manual_seed(0))
    for square in orders.split(5):
        assert torch.equal(square.sort(1).values, torch.arange(5).expand(5, 5))
        assert torch.equal(square.sort(0).values, torch.arange(5)[:, None].expand(5, 5))


def test_balanced_permutations_are_uniform() -> None:
    generator = torch.Generator().manual_seed(0)
    second = torch.stack([balanced_permutations(4, 4, generator)[1] for _ in range(4_800)])
    counts = torch.unique(second, dim=0, return_counts=True)[1]
    assert len(counts) == 24
    assert float((counts - 200).square().sum() / 200) < 49.7  # χ² with 23 degrees of freedom, p = 0.001


@pytest.mark.parametrize("sampler", [random_permutations, balanced_permutations])
def test_longer_samples_extend_shorter_ones(sampler: object) -> None:
    assert callable(sampler)
    long, short = (sampler(7, count, torch.Generator().manual_seed(3)) for count in (30, 11))
    assert torch.equal(long[:11], short)


def test_contributions_by_permutation_match_the_game_table() -> None:
    table = torch.stack([smooth_game(6, seed) for seed in range(3)])
    orders = random_permutations(6, 10, torch.Generator().manual_seed(0))
    result = contributions_by_permutation(
        characteristic_function(table), empty_and_grand_worth(characteristic_function(table), 6), orders
    )
    assert torch.allclose(result, torch.stack([marginal_contributions(game, orders) for game in table]))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=NAMES)
def test_estimates_are_unbiased_with_correct_standard_errors(estimator: Estimator) -> None:
    worth, generator = smooth_game(6), torch.Generator().manual_seed(0)
    exact = shapley_values(worth - worth[0])
    results = [estimator(characteristic_function(worth), 6, 130, generator=generator) for _ in range(300)]
    errors = torch.stack([result.values - exact for result in results])
    reported = torch.stack([result.errors for result in results]).square().mean().sqrt()
    assert bool(((errors.mean(0) / (errors.std(0) / 300**0.5)).abs() < 4).all())
    # errors of balanced permutations are slightly overestimated
    assert 0.6 < float(errors.square().mean().sqrt() / reported) < 1.15


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=NAMES)
def test_values_are_efficient_for_any_budget(estimator: Estimator) -> None:
    table = torch.stack([smooth_game(7, seed) for seed in range(4)]).view(2, 2, -1)
    for budget in (24, 61, 200):
        result = estimator(characteristic_function(table), 7, budget, generator=torch.Generator().manual_seed(0))
        assert result.values.shape == result.errors.shape == (2, 2, 7)
        assert torch.allclose(result.values.sum(-1), table[..., -1] - table[..., 0], atol=1e-12)


def test_additive_games_are_exact() -> None:
    weights = torch.tensor([3.0, -1.0, 0.0, 2.0], dtype=torch.float64)
    for estimator in ESTIMATORS:
        result = estimator(lambda coalitions: 5 + coalitions.double() @ weights, 4, 40)
        assert torch.allclose(result.values, weights)
        assert float(result.errors.max()) < 1e-12


def test_balanced_permutations_are_exact_for_symmetric_games() -> None:
    by_size = torch.tensor([0.0, 5.0, -3.0, 2.0, 9.0], dtype=torch.float64)
    result = balanced_permutation_sampling(lambda coalitions: by_size[coalitions.sum(1)], 4, 8 * 3)
    assert torch.allclose(result.values, torch.full((4,), 9 / 4, dtype=torch.float64))
    assert float(result.errors.max()) < 1e-12
    generator = torch.Generator().manual_seed(0)
    random = permutation_sampling(lambda coalitions: by_size[coalitions.sum(1)], 4, 8 * 3, generator=generator)
    assert float(random.errors.mean()) > 0.5


def test_single_player_gets_the_whole_value() -> None:
    for estimator in ESTIMATORS:
        result = estimator(characteristic_function(torch.tensor([2.0, 7.0])), 1, 2)
        assert (result.values.tolist(), result.errors.tolist()) == ([5.0], [0.0])


def test_insufficient_budget_raises_value_error() -> None:
    with pytest.raises(ValueError, match="two permutations, here 10 coalitions of 6 players; got budget=9"):
        permutation_sampling(characteristic_function(smooth_game(6)), 6, 9)
    with pytest.raises(ValueError, match="two antithetic pairs, here 20"):
        balanced_permutation_sampling(characteristic_function(smooth_game(6)), 6, 19, antithetic=True)
    with pytest.raises(ValueError, match="players must be positive"):
        permutation_sampling(characteristic_function(torch.zeros(1)), 0, 9)
