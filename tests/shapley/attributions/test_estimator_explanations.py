"""Attributions by any estimator: they sum to the prediction, stop at a tolerance, and count evaluations."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from parnassus.shapley.attributions.attribution import explain_exactly
from parnassus.shapley.attributions.estimator_explanations import (
    explain_with_estimator,
    explain_with_estimator_to_tolerance,
)
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.model_adapters import ModelError, as_model
from parnassus.shapley.estimators.estimate import Estimator
from parnassus.shapley.estimators.kernel_shap import kernel_shap
from parnassus.shapley.estimators.permutation_sampling import balanced_permutation_sampling, permutation_sampling
from parnassus.shapley.estimators.stratified_sampling import stratified_sampling

ESTIMATORS: list[Estimator] = [
    permutation_sampling,
    partial(permutation_sampling, antithetic=True),
    balanced_permutation_sampling,
    stratified_sampling,
]
NAMES = ["random", "mirrored", "balanced", "by size"]


def network(features: int = 8) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(features, 16), nn.Tanh(), nn.Linear(16, 2))


def rows(count: int, seed: int) -> Tensor:
    return torch.randn(count, 8, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=NAMES)
def test_attributions_sum_to_the_model_output(estimator: Estimator) -> None:
    model, x = as_model(network()), rows(3, 1)
    value = InterventionalValue(model, rows(10, 2))
    result = explain_with_estimator(estimator, value, x, 220, generator=torch.Generator().manual_seed(0))
    assert result.values.shape == (3, 2, 8)
    assert torch.allclose(result.prediction, model(x).double(), atol=1e-6)
    assert result.evaluations <= 222
    error = (result.values - explain_exactly(value, x).values).abs()
    assert bool((error <= 6 * result.errors + 1e-9).all())


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=NAMES)
def test_sampling_stops_at_the_tolerance(estimator: Estimator) -> None:
    value, x = InterventionalValue(as_model(network()), rows(10, 2)), rows(2, 1)
    coarse, fine = (
        explain_with_estimator_to_tolerance(
            estimator,
            value,
            x,
            tolerance,
            first_budget=220,
            max_budget=100_000,
            generator=torch.Generator().manual_seed(0),
        )
        for tolerance in (0.05, 0.005)
    )
    assert float(coarse.errors.max()) <= 0.05
    assert float(fine.errors.max()) <= 0.005
    assert coarse.evaluations <= fine.evaluations <= 256  # all coalitions of 8 players


def test_last_round_evaluates_all_coalitions() -> None:
    value, x = InterventionalValue(as_model(network()), rows(10, 2)), rows(2, 1)
    result = explain_with_estimator_to_tolerance(
        permutation_sampling, value, x, 1e-9, first_budget=100, max_budget=100_000
    )
    assert torch.allclose(result.values, explain_exactly(value, x).values, atol=1e-12)
    assert (float(result.errors.max()), result.evaluations) == (0.0, 256)
    limited = explain_with_estimator_to_tolerance(
        permutation_sampling, value, x, 1e-9, first_budget=100, max_budget=200
    )
    assert float(limited.errors.max()) > 1e-9


def test_sufficient_budget_gives_exact_values() -> None:
    value, x = InterventionalValue(as_model(network()), rows(10, 2)), rows(2, 1)
    assert torch.equal(
        explain_with_estimator(permutation_sampling, value, x, 256).values, explain_exactly(value, x).values
    )


def test_kernel_shap_is_an_estimator() -> None:
    value, x = InterventionalValue(as_model(network()), rows(10, 2)), rows(2, 1)
    result = explain_with_estimator(kernel_shap, value, x, 100, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(result.values, explain_exactly(value, x).values, atol=0.02)


def test_random_model_raises_model_error() -> None:
    value = InterventionalValue(as_model(lambda x: torch.rand(len(x))), rows(10, 2))
    with pytest.raises(ModelError, match="must be deterministic"):
        explain_with_estimator(permutation_sampling, value, rows(1, 1), 100)
    with pytest.raises(ModelError, match="must be deterministic"):
        explain_with_estimator_to_tolerance(
            permutation_sampling, value, rows(1, 1), 0.1, first_budget=100, max_budget=200
        )
