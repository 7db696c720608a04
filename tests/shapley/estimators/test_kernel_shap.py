"""Kernel SHAP against exact values, for one and many players, one and several games."""

import sys

import pytest
import torch
from torch import Tensor

from parnassus.shapley.estimators.coalition_sampling import exhaustive_sample, sample_coalitions
from parnassus.shapley.estimators.kernel_shap import PairedRegression, kernel_shap, limiting_inverse
from parnassus.shapley.games.shapley_values import shapley_values


def looked_up(worth: Tensor, asked: Tensor) -> Tensor:
    return worth[..., asked.long() @ 2 ** torch.arange(asked.shape[1])]


@pytest.mark.parametrize("players", [1, 2, 3, 6, 9])
def test_all_coalitions_give_exact_values(players: int) -> None:
    worth = torch.randn(3, 2**players, dtype=torch.float64, generator=torch.Generator().manual_seed(players))
    found = kernel_shap(lambda asked: looked_up(worth, asked), players, 2**players)
    assert torch.allclose(found.values, shapley_values(worth - worth[:, :1]), atol=1e-12)
    assert float(found.errors.max()) == 0.0


def test_parts_sum_to_the_whole_at_any_budget() -> None:
    worth = torch.randn(4, 2**9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for budget in (2, 6, 40, 200):
        found = kernel_shap(lambda asked: looked_up(worth, asked), 9, budget)
        assert torch.allclose(found.values.sum(1), worth[:, -1] - worth[:, 0], atol=1e-10)


def test_a_sum_of_parts_is_found_from_few_coalitions() -> None:
    parts = torch.randn(12, dtype=torch.float64)
    found = kernel_shap(lambda asked: asked.double() @ parts + 5.0, 12, 60)
    assert torch.allclose(found.values, parts, atol=1e-10)
    assert float(found.errors.max()) < 1e-10


def test_float32_is_kept_and_near() -> None:
    worth = torch.randn(2**6, generator=torch.Generator().manual_seed(0))
    found = kernel_shap(lambda asked: looked_up(worth, asked), 6, 64)
    assert found.values.dtype == torch.float32
    assert torch.allclose(found.values, shapley_values(worth - worth[0]), atol=1e-5)


def test_errors_cover_what_is_missed() -> None:
    source = torch.Generator().manual_seed(0)
    worth = torch.randn(50, 2**9, dtype=torch.float64, generator=source)
    exact = shapley_values(worth - worth[:, :1])
    share = []
    for _ in range(20):
        found = kernel_shap(lambda asked: looked_up(worth, asked), 9, 120, generator=source)
        share.append(((found.values - exact).abs() / found.errors).flatten())
    within = [float((torch.cat(share) < many).double().mean()) for many in (1.0, 2.0)]
    assert within == pytest.approx([0.683, 0.954], abs=0.03)


def test_errors_cover_with_few_pairs_too() -> None:
    source = torch.Generator().manual_seed(0)
    worth = torch.randn(50, 2**9, dtype=torch.float64, generator=source)
    exact = shapley_values(worth - worth[:, :1])
    for budget in (30, 50, 80):
        found = [kernel_shap(lambda asked: looked_up(worth, asked), 9, budget, generator=source) for _ in range(20)]
        within = torch.stack([((each.values - exact).abs() < 2 * each.errors).double().mean() for each in found])
        assert float(within.mean()) == pytest.approx(0.96, abs=0.02)


def test_degrees_of_freedom_are_those_of_squared_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the squared mean over the variance, from many draws of noise; with nothing left to chance it is endless."""
    asked = sample_coalitions(6, 30, generator=torch.Generator().manual_seed(0))
    like = torch.zeros(1, dtype=torch.float64)
    pairs = PairedRegression.build(asked, like)
    noise = torch.randn(100_000, len(pairs.size), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    left = (noise - (noise @ pairs.influence) @ pairs.centred.mT) / pairs.one_minus_leverage
    squares = pairs.standard_errors(left).square()
    assert torch.allclose(pairs.degrees_of_freedom(), 2 * squares.mean(0).square() / squares.var(0), rtol=0.1)
    monkeypatch.setattr(sys.modules[PairedRegression.__module__], "MAX_PAIRS_WITH_CROSS_TERMS", 3)
    assert bool((pairs.degrees_of_freedom() > 1).all())
    assert PairedRegression.build(exhaustive_sample(4), like).degrees_of_freedom().isinf().all()


def test_too_few_to_know_is_said_by_infinite_errors() -> None:
    worth = torch.randn(2**9, dtype=torch.float64)
    assert kernel_shap(lambda asked: looked_up(worth, asked), 9, 12).errors.isinf().all()
    assert kernel_shap(lambda asked: looked_up(worth, asked), 9, 30).errors.isfinite().all()


def test_the_limit_needs_two() -> None:
    with pytest.raises(ValueError, match="at least two; got players=1"):
        limiting_inverse(1)
