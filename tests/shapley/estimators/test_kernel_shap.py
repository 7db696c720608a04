"""Kernel SHAP against exact values, for one and many players, one and several games."""

import sys

import pytest
import torch
from torch import Tensor

from parnassus.probability import standard_normal
from parnassus.shapley.estimators.coalition_sampling import exhaustive_sample, sample_coalitions
from parnassus.shapley.estimators.kernel_shap import PairedRegression, kernel_shap, limiting_inverse
from parnassus.shapley.games.shapley_values import shapley_values


def look_up(worth: Tensor, coalitions: Tensor) -> Tensor:
    return worth[..., coalitions.long() @ 2 ** torch.arange(coalitions.shape[1])]


@pytest.mark.parametrize("players", [1, 2, 3, 6, 9])
def test_all_coalitions_give_exact_values(players: int) -> None:
    worth = standard_normal(3, 2**players, seed=players)
    result = kernel_shap(lambda coalitions: look_up(worth, coalitions), players, 2**players)
    assert torch.allclose(result.values, shapley_values(worth - worth[:, :1]), atol=1e-12)
    assert float(result.errors.max()) == 0.0


def test_values_are_efficient_for_any_budget() -> None:
    worth = standard_normal(4, 2**9)
    for budget in (2, 6, 40, 200):
        result = kernel_shap(lambda coalitions: look_up(worth, coalitions), 9, budget)
        assert torch.allclose(result.values.sum(1), worth[:, -1] - worth[:, 0], atol=1e-10)


def test_additive_games_are_exact_from_few_coalitions() -> None:
    weights = torch.randn(12, dtype=torch.float64)
    result = kernel_shap(lambda coalitions: coalitions.double() @ weights + 5.0, 12, 60)
    assert torch.allclose(result.values, weights, atol=1e-10)
    assert float(result.errors.max()) < 1e-10


def test_float32_is_preserved_and_accurate() -> None:
    worth = torch.randn(2**6, generator=torch.Generator().manual_seed(0))
    result = kernel_shap(lambda coalitions: look_up(worth, coalitions), 6, 64)
    assert result.values.dtype == torch.float32
    assert torch.allclose(result.values, shapley_values(worth - worth[0]), atol=1e-5)


def test_standard_errors_have_nominal_coverage() -> None:
    generator = torch.Generator().manual_seed(0)
    worth = torch.randn(50, 2**9, dtype=torch.float64, generator=generator)
    exact = shapley_values(worth - worth[:, :1])
    ratios = []
    for _ in range(20):
        result = kernel_shap(lambda coalitions: look_up(worth, coalitions), 9, 120, generator=generator)
        ratios.append(((result.values - exact).abs() / result.errors).flatten())
    within = [float((torch.cat(ratios) < deviations).double().mean()) for deviations in (1.0, 2.0)]
    assert within == pytest.approx([0.683, 0.954], abs=0.03)


def test_standard_errors_have_nominal_coverage_with_few_pairs() -> None:
    generator = torch.Generator().manual_seed(0)
    worth = torch.randn(50, 2**9, dtype=torch.float64, generator=generator)
    exact = shapley_values(worth - worth[:, :1])
    for budget in (30, 50, 80):
        results = [
            kernel_shap(lambda coalitions: look_up(worth, coalitions), 9, budget, generator=generator)
            for _ in range(20)
        ]
        within = torch.stack(
            [((result.values - exact).abs() < 2 * result.errors).double().mean() for result in results]
        )
        assert float(within.mean()) == pytest.approx(0.96, abs=0.02)


def test_degrees_of_freedom_match_the_variance_of_squared_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 mean² / variance over many noise samples; infinite if all coalitions are evaluated."""
    sample = sample_coalitions(6, 30, generator=torch.Generator().manual_seed(0))
    worth = torch.zeros(1, dtype=torch.float64)
    pairs = PairedRegression.build(sample, worth)
    noise = standard_normal(100_000, len(pairs.size), seed=1)
    residuals = (noise - (noise @ pairs.influence) @ pairs.centred.mT) / pairs.one_minus_leverage
    squares = pairs.standard_errors(residuals).square()
    assert torch.allclose(pairs.degrees_of_freedom(), 2 * squares.mean(0).square() / squares.var(0), rtol=0.1)
    monkeypatch.setattr(sys.modules[PairedRegression.__module__], "MAX_PAIRS_WITH_CROSS_TERMS", 3)
    assert bool((pairs.degrees_of_freedom() > 1).all())
    assert PairedRegression.build(exhaustive_sample(4), worth).degrees_of_freedom().isinf().all()


def test_too_few_coalitions_give_infinite_errors() -> None:
    worth = torch.randn(2**9, dtype=torch.float64)
    assert kernel_shap(lambda coalitions: look_up(worth, coalitions), 9, 12).errors.isinf().all()
    assert kernel_shap(lambda coalitions: look_up(worth, coalitions), 9, 30).errors.isfinite().all()


def test_limiting_inverse_of_one_player_raises_value_error() -> None:
    with pytest.raises(ValueError, match="at least two; got players=1"):
        limiting_inverse(1)
