"""Regression adjustment: Shapley values of the surrogate, its residuals, its errors."""

import pytest
import torch
from torch import Tensor

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


def smooth(players: int, seed: int = 0) -> Tensor:
    source = torch.Generator().manual_seed(seed)
    hidden = 0.5 * torch.randn(players, 6, generator=source, dtype=torch.float64)
    return (all_coalitions(players).double() @ hidden).tanh() @ torch.randn(6, generator=source, dtype=torch.float64)


def looked_up(worth: Tensor, asked: Tensor) -> Tensor:
    return worth[..., asked.long() @ 2 ** torch.arange(asked.shape[-1])]


@pytest.mark.parametrize("players", [2, 5, 8])
def test_values_of_a_product_game(players: int) -> None:
    having, lacking = product_game_values(players, 0.6)
    for size in range(players + 1):
        special = torch.arange(players) < size
        worth = 0.6 ** (all_coalitions(players) != special).sum(1).double()
        expected = torch.where(special, having[size], lacking[size])
        assert torch.allclose(shapley_values(worth), expected, atol=1e-14)


def test_the_surrogate_has_the_reported_values_and_residuals() -> None:
    """By refitting without a pair, and by asking what was learned about all coalitions."""
    players = 6
    worth = smooth(players)
    asked = sample_coalitions(players, 40, generator=torch.Generator().manual_seed(0))
    pairs = PairedRegression.build(asked, worth)
    equal = (worth[-1] - worth[0]) / players
    odd = pairs.odd_part(looked_up(worth, asked.coalitions), equal)
    found = fit_surrogate(pairs, odd, 3.0, 100)
    kept = torch.arange(len(odd)) != 4
    without = PairedRegression(
        pairs.centred[kept], pairs.influence[kept], pairs.size[kept], pairs.inclusion_probability[kept]
    )
    everywhere = PairedRegression.build(exhaustive_sample(players), worth)
    order = torch.cat([torch.arange(len(odd))[kept], torch.tensor([4])])
    last = PairedRegression(*(each[order] for each in pairs))
    said = _foretold(without, odd[kept], last.centred[-1:], last.size[-1:])
    assert float(found.loo_residuals[4]) == pytest.approx(float(odd[4] - said), abs=1e-6)
    game = _foretold(pairs, odd, everywhere.centred, everywhere.size)
    values = game @ everywhere.influence  # exact, as all are there
    assert torch.allclose(found.values, values, atol=1e-8)


def _foretold(pairs: PairedRegression, odd: Tensor, centred: Tensor, size: Tensor) -> Tensor:
    """What is learned from some pairs, of others: those come after what is learned from."""
    more = PairedRegression(
        torch.cat([pairs.centred, centred]),
        torch.cat([pairs.influence, torch.zeros_like(centred)]),
        torch.cat([pairs.size, size]),
        torch.cat([pairs.inclusion_probability, torch.ones_like(size)]),
    )
    return -fit_surrogate(more, torch.cat([odd, torch.zeros_like(size)]), 3.0, len(odd)).residuals[len(odd) :]


def test_smooth_games_have_smaller_errors_and_stay_efficient() -> None:
    worth = torch.stack([smooth(9, seed) for seed in range(8)])
    exact = shapley_values(worth - worth[:, :1])
    asked = sample_coalitions(9, 160, generator=torch.Generator().manual_seed(0))
    ends = worth[:, 0], worth[:, -1]
    plain, better = (
        solve(asked, looked_up(worth, asked.coalitions), *ends)
        for solve in (weighted_regression, regression_adjustment)
    )
    assert float((better.values - exact).square().mean()) < 0.5 * float((plain.values - exact).square().mean())
    assert torch.allclose(better.values.sum(1), ends[1] - ends[0], atol=1e-10)


@pytest.mark.parametrize("most", [1_000, 20], ids=["all learned", "some learned"])
def test_errors_are_correct_for_games_from_the_gaussian_process(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Games drawn from the Gaussian process itself; uncorrected, errors are too small by a tenth or so."""
    players, roughness = 7, 2.0
    apart = (all_coalitions(players)[:, None] != all_coalitions(players)).sum(-1).double()
    root = torch.linalg.cholesky(torch.exp(-roughness / players * apart) + 1e-12 * torch.eye(2**players))
    drawn = torch.randn(20_000, 2**players, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    worth = drawn @ root.mT
    exact = shapley_values(worth - worth[:, :1])
    monkeypatch.setattr(adjustment_module, "ROUGHNESS", (roughness,))
    monkeypatch.setattr(adjustment_module, "MAX_PAIRS", most)
    monkeypatch.setattr(adjustment_module, "INFLATION_RANGE", (0.0, torch.inf))
    monkeypatch.setattr(adjustment_module, "MAX_VARIANCE_RATIO", torch.inf)
    more = []
    for seed in range(4):
        asked = sample_coalitions(players, 60, generator=torch.Generator().manual_seed(seed))
        found = regression_adjustment(asked, looked_up(worth, asked.coalitions), worth[:, 0], worth[:, -1])
        ratio = (found.values - exact).square().mean() / found.errors.square().mean()
        assert float(ratio) == pytest.approx(1.0, abs=0.03)
        more.append(variance_inflation(PairedRegression.build(asked, worth), roughness, most))
    assert sum(more) / 4 > 1.0


def test_sets_are_solved_independently() -> None:
    worth = torch.stack([smooth(7, seed) for seed in range(3)])
    asked = sample_coalition_sets(2, 7, 60, generator=torch.Generator().manual_seed(0))
    found = torch.stack([looked_up(worth, each) for each in asked.coalitions])
    ends = worth[:, 0].expand(2, -1), worth[:, -1].expand(2, -1)
    for solve in (weighted_regression, regression_adjustment):
        both = solve(asked, found, *ends)
        for each in range(2):
            alone = solve(
                CoalitionSample(asked.coalitions[each], asked.inclusion_probability),
                found[each],
                worth[:, 0],
                worth[:, -1],
            )
            if solve is weighted_regression:
                assert torch.allclose(both.values[each], alone.values, atol=1e-10)
                assert torch.allclose(both.errors[each], alone.errors, atol=1e-10)
            assert torch.allclose(both.values[each].sum(-1), worth[:, -1] - worth[:, 0], atol=1e-10)


def test_learning_from_some_pairs_only_is_still_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adjustment_module, "MAX_PAIRS", 120)
    worth = smooth(10)
    found = kernel_shap(lambda asked: looked_up(worth, asked), 10, 400, solver=regression_adjustment)
    exact = shapley_values(worth - worth[0])
    assert bool(((found.values - exact).abs() <= 5 * found.errors + 1e-9).all())


@pytest.mark.parametrize("players", [1, 2, 3, 6])
def test_all_coalitions_give_exact_values(players: int) -> None:
    worth = torch.randn(2, 2**players, dtype=torch.float64, generator=torch.Generator().manual_seed(players))
    found = kernel_shap(lambda asked: looked_up(worth, asked), players, 2**players, solver=regression_adjustment)
    assert torch.allclose(found.values, shapley_values(worth - worth[:, :1]), atol=1e-12)


def test_a_game_of_chance_is_left_to_the_regression() -> None:
    worth = torch.randn(6, 2**9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    asked = sample_coalitions(9, 120, generator=torch.Generator().manual_seed(0))
    given = looked_up(worth, asked.coalitions), worth[:, 0], worth[:, -1]
    assert torch.equal(regression_adjustment(asked, *given).values, weighted_regression(asked, *given).values)
