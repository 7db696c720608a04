"""Regression adjustment: Shapley values of the surrogate, its residuals, its errors."""

import pytest
import torch
from torch import Tensor

from parnassus.probability import standard_normal
from parnassus.shapley.estimators import regression_adjustment as adjustment_module
from parnassus.shapley.estimators.coalition_sampling import (
    CoalitionSample,
    exhaustive_sample,
    sample_coalition_sets,
    sample_coalitions,
)
from parnassus.shapley.estimators.kernel_shap import PairedRegression, kernel_shap, weighted_regression
from parnassus.shapley.estimators.regression_adjustment import (
    fit_surrogate,
    product_game_values,
    regression_adjustment,
    variance_inflation,
)
from parnassus.shapley.games.cooperative_games import all_coalitions
from parnassus.shapley.games.shapley_values import shapley_values


def smooth_game(players: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    hidden = 0.5 * torch.randn(players, 6, generator=generator, dtype=torch.float64)
    return (all_coalitions(players).double() @ hidden).tanh() @ torch.randn(6, generator=generator, dtype=torch.float64)


def look_up(worth: Tensor, sample: Tensor) -> Tensor:
    return worth[..., sample.long() @ 2 ** torch.arange(sample.shape[-1])]


@pytest.mark.parametrize("players", [2, 5, 8])
def test_product_game_values_match_enumeration(players: int) -> None:
    members, non_members = product_game_values(players, 0.6)
    for size in range(players + 1):
        is_member = torch.arange(players) < size
        worth = 0.6 ** (all_coalitions(players) != is_member).sum(1).double()
        expected = torch.where(is_member, members[size], non_members[size])
        assert torch.allclose(shapley_values(worth), expected, atol=1e-14)


def test_surrogate_values_and_residuals_match_refits() -> None:
    """Against refitting without one pair, and against predictions for all coalitions."""
    players = 6
    worth = smooth_game(players)
    sample = sample_coalitions(players, 40, generator=torch.Generator().manual_seed(0))
    pairs = PairedRegression.build(sample, worth)
    equal = (worth[-1] - worth[0]) / players
    odd = pairs.odd_part(look_up(worth, sample.coalitions), equal)
    surrogate = fit_surrogate(pairs, odd, 3.0, 100)
    is_kept = torch.arange(len(odd)) != 4
    without = PairedRegression(
        pairs.centred[is_kept], pairs.influence[is_kept], pairs.size[is_kept], pairs.inclusion_probability[is_kept]
    )
    everywhere = PairedRegression.build(exhaustive_sample(players), worth)
    order = torch.cat([torch.arange(len(odd))[is_kept], torch.tensor([4])])
    last = PairedRegression(*(each[order] for each in pairs))
    predicted = predict_pairs(without, odd[is_kept], last.centred[-1:], last.size[-1:])
    assert float(surrogate.loo_residuals[4]) == pytest.approx(float(odd[4] - predicted), abs=1e-6)
    game = predict_pairs(pairs, odd, everywhere.centred, everywhere.size)
    values = game @ everywhere.influence  # exact for all coalitions
    assert torch.allclose(surrogate.values, values, atol=1e-8)


def predict_pairs(pairs: PairedRegression, odd: Tensor, centred: Tensor, size: Tensor) -> Tensor:
    """Predictions for further pairs of a surrogate that is fitted to `pairs`."""
    extended = PairedRegression(
        torch.cat([pairs.centred, centred]),
        torch.cat([pairs.influence, torch.zeros_like(centred)]),
        torch.cat([pairs.size, size]),
        torch.cat([pairs.inclusion_probability, torch.ones_like(size)]),
    )
    return -fit_surrogate(extended, torch.cat([odd, torch.zeros_like(size)]), 3.0, len(odd)).residuals[len(odd) :]


def test_adjustment_reduces_errors_of_smooth_games_and_is_efficient() -> None:
    worth = torch.stack([smooth_game(9, seed) for seed in range(8)])
    exact = shapley_values(worth - worth[:, :1])
    sample = sample_coalitions(9, 160, generator=torch.Generator().manual_seed(0))
    ends = worth[:, 0], worth[:, -1]
    plain, adjusted = (
        solve(sample, look_up(worth, sample.coalitions), *ends)
        for solve in (weighted_regression, regression_adjustment)
    )
    assert float((adjusted.values - exact).square().mean()) < 0.5 * float((plain.values - exact).square().mean())
    assert torch.allclose(adjusted.values.sum(1), ends[1] - ends[0], atol=1e-10)


@pytest.mark.parametrize("max_pairs", [1_000, 20], ids=["all pairs", "some pairs"])
def test_errors_are_correct_for_games_from_the_gaussian_process(
    monkeypatch: pytest.MonkeyPatch, max_pairs: int
) -> None:
    """Without the correction errors would be about 10 % too small."""
    players, roughness = 7, 2.0
    distances = (all_coalitions(players)[:, None] != all_coalitions(players)).sum(-1).double()
    root = torch.linalg.cholesky(torch.exp(-roughness / players * distances) + 1e-12 * torch.eye(2**players))
    noise = standard_normal(20_000, 2**players)
    worth = noise @ root.mT
    exact = shapley_values(worth - worth[:, :1])
    monkeypatch.setattr(adjustment_module, "ROUGHNESS", (roughness,))
    monkeypatch.setattr(adjustment_module, "MAX_PAIRS", max_pairs)
    monkeypatch.setattr(adjustment_module, "INFLATION_RANGE", (0.0, torch.inf))
    monkeypatch.setattr(adjustment_module, "MAX_VARIANCE_RATIO", torch.inf)
    inflation = []
    for seed in range(4):
        sample = sample_coalitions(players, 60, generator=torch.Generator().manual_seed(seed))
        result = regression_adjustment(sample, look_up(worth, sample.coalitions), worth[:, 0], worth[:, -1])
        ratio = (result.values - exact).square().mean() / result.errors.square().mean()
        assert float(ratio) == pytest.approx(1.0, abs=0.03)
        inflation.append(variance_inflation(PairedRegression.build(sample, worth), roughness, max_pairs))
    assert sum(inflation) / 4 > 1.0


def test_sets_are_solved_independently() -> None:
    worth = torch.stack([smooth_game(7, seed) for seed in range(3)])
    sample = sample_coalition_sets(2, 7, 60, generator=torch.Generator().manual_seed(0))
    result = torch.stack([look_up(worth, index) for index in sample.coalitions])
    ends = worth[:, 0].expand(2, -1), worth[:, -1].expand(2, -1)
    for solve in (weighted_regression, regression_adjustment):
        both = solve(sample, result, *ends)
        for index in range(2):
            single = solve(
                CoalitionSample(sample.coalitions[index], sample.inclusion_probability),
                result[index],
                worth[:, 0],
                worth[:, -1],
            )
            if solve is weighted_regression:
                assert torch.allclose(both.values[index], single.values, atol=1e-10)
                assert torch.allclose(both.errors[index], single.errors, atol=1e-10)
            assert torch.allclose(both.values[index].sum(-1), worth[:, -1] - worth[:, 0], atol=1e-10)


def test_errors_are_correct_with_limited_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adjustment_module, "MAX_PAIRS", 120)
    worth = smooth_game(10)
    result = kernel_shap(lambda sample: look_up(worth, sample), 10, 400, solver=regression_adjustment)
    exact = shapley_values(worth - worth[0])
    assert bool(((result.values - exact).abs() <= 5 * result.errors + 1e-9).all())


@pytest.mark.parametrize("players", [1, 2, 3, 6])
def test_all_coalitions_give_exact_values(players: int) -> None:
    worth = standard_normal(2, 2**players, seed=players)
    result = kernel_shap(lambda sample: look_up(worth, sample), players, 2**players, solver=regression_adjustment)
    assert torch.allclose(result.values, shapley_values(worth - worth[:, :1]), atol=1e-12)


def test_random_games_fall_back_to_weighted_regression() -> None:
    worth = standard_normal(6, 2**9)
    sample = sample_coalitions(9, 120, generator=torch.Generator().manual_seed(0))
    arguments = look_up(worth, sample.coalitions), worth[:, 0], worth[:, -1]
    assert torch.equal(regression_adjustment(sample, *arguments).values, weighted_regression(sample, *arguments).values)
