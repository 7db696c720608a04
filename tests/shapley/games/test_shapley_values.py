"""Shapley values and related indices against their definitions."""

from collections.abc import Callable
from itertools import combinations, permutations
from math import comb

import pytest
import torch
from torch import Tensor

from parnassus.probability import standard_normal
from parnassus.shapley.estimators.estimate import small_sample_errors
from parnassus.shapley.games.cooperative_games import all_coalitions
from parnassus.shapley.games.shapley_values import (
    axiom_violations,
    banzhaf_values,
    interaction_indices,
    marginal_contributions,
    permutation_table,
    shapley_values,
    subset_weights,
    swap_players,
)


def random_game(players: int, seed: int = 0) -> Tensor:
    worth = standard_normal(2**players, seed=seed)
    worth[0] = 0.0
    return worth


def coalition_index(coalition: tuple[int, ...]) -> int:
    return sum(2**player for player in coalition)


def test_shapley_values_match_the_subset_formula() -> None:
    worth, players = random_game(5), 5
    for player in range(players):
        others = [other for other in range(players) if other != player]
        value = sum(
            float(worth[coalition_index((*subset, player))] - worth[coalition_index(subset)])
            / comb(players - 1, size)
            / players
            for size in range(players)
            for subset in combinations(others, size)
        )
        assert float(shapley_values(worth)[player]) == pytest.approx(value, abs=1e-12)


def test_marginal_contributions_of_every_permutation() -> None:
    worth = random_game(4, seed=1)
    for order in permutations(range(4)):
        found, before = marginal_contributions(worth, torch.tensor(order)), 0
        for player in order:
            assert float(found[player]) == pytest.approx(float(worth[before + 2**player] - worth[before]))
            before += 2**player


def test_leading_axes_are_batches() -> None:
    games = torch.stack([torch.stack([random_game(4, seed) for seed in (row, row + 10)]) for row in range(3)])
    assert shapley_values(games).shape == (3, 2, 4)
    assert torch.allclose(shapley_values(games)[2, 1], permutation_table(games[2, 1]).values)
    assert torch.allclose(interaction_indices(games)[1, 0], interaction_indices(games[1, 0]))


def test_float32_is_preserved() -> None:
    assert shapley_values(random_game(4).float()).dtype == torch.float32


def test_one_and_no_players() -> None:
    assert shapley_values(torch.tensor([0.0, 7.0])).tolist() == [7.0]
    assert banzhaf_values(torch.tensor([0.0, 7.0])).tolist() == [7.0]
    assert shapley_values(torch.zeros(1)).shape == (0,)


def test_banzhaf_values_are_mean_marginal_contributions() -> None:
    worth, is_member = random_game(4), all_coalitions(4)
    for player in range(4):
        without = torch.arange(16)[~is_member[:, player]]
        contributions = worth[without + 2**player] - worth[without]
        assert float(banzhaf_values(worth)[player]) == pytest.approx(float(contributions.mean()))


def test_interaction_indices_are_mean_second_differences() -> None:
    worth, players = random_game(4), 4
    first, second = 1, 3
    others = (0, 2)
    total = 0.0
    for size in range(players - 1):
        for subset in combinations(others, size):
            s = coalition_index(subset)
            change = worth[s + 2**first + 2**second] - worth[s + 2**first] - worth[s + 2**second] + worth[s]
            total += float(change) / comb(players - 2, size) / (players - 1)
    assert float(interaction_indices(worth)[first, second]) == pytest.approx(total)
    assert torch.allclose(interaction_indices(worth), interaction_indices(worth).mT)


def test_subset_weights_sum_to_one() -> None:
    counts = torch.tensor([comb(6, size) for size in range(7)], dtype=torch.float64)
    assert float(subset_weights(7) @ counts) == pytest.approx(1.0)


def test_swapping_players_swaps_values() -> None:
    worth = random_game(4)
    assert torch.allclose(shapley_values(swap_players(worth, 0, 2))[[2, 1, 0, 3]], shapley_values(worth))


def test_axiom_violations_of_a_wrong_value_are_reported() -> None:
    violations = dict(axiom_violations(lambda worth: worth[2 ** torch.arange(4)], random_game(4), random_game(4, 1)))
    assert violations["efficiency"] > 0.1
    assert violations["additivity"] < 1e-12


def test_too_many_players_raise_value_error() -> None:
    with pytest.raises(ValueError, match="362,880 permutations"):
        permutation_table(torch.zeros(2**9))


def test_errors_from_few_samples_are_widened_by_student_t() -> None:
    one = torch.ones(1, dtype=torch.float64)
    probability = torch.special.ndtr(torch.tensor(2.0, dtype=torch.float64))
    cauchy, two = (
        torch.tan(torch.pi * (probability - 0.5)),
        (2 * probability - 1) / (2 * probability * (1 - probability)).sqrt(),
    )
    assert float(small_sample_errors(one, 1)) == pytest.approx(float(cauchy) / 2)
    assert float(small_sample_errors(one, 2)) == pytest.approx(float(two) / 2)
    assert small_sample_errors(one, 10**9).tolist() == pytest.approx([1.0])
    degrees_of_freedom = torch.tensor([0.1, 1.0, torch.inf], dtype=torch.float64)  # values below 1 are clamped
    assert small_sample_errors(one.float().expand(2, 3), degrees_of_freedom)[1].tolist() == pytest.approx(
        [float(cauchy) / 2] * 2 + [1.0]
    )


def test_widened_errors_of_three_samples_have_nominal_coverage() -> None:
    samples = standard_normal(20_000, 3)
    errors = small_sample_errors(samples.std(1, keepdim=True) / 3**0.5, 2)[:, 0]
    assert float((samples.mean(1).abs() <= 2 * errors).double().mean()) == pytest.approx(0.9545, abs=0.005)


@pytest.mark.parametrize("value", [shapley_values, banzhaf_values, interaction_indices])
def test_integer_worths_are_supported(value: Callable[[Tensor], Tensor]) -> None:
    worth = torch.tensor([0, 1, 2, 6, 3, 3, 7, 10])
    assert torch.equal(value(worth), value(worth.double()))
