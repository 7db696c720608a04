"""Kernel SHAP to a tolerance: evaluations are reused, errors reach the tolerance, the budget is respected."""

import pytest
import torch
from torch import Tensor

from parnassus.probability import standard_normal
from parnassus.shapley.attributions import adaptive_kernel_shap, attribution
from parnassus.shapley.attributions.adaptive_kernel_shap import GrowingAttribution, explain_to_tolerance
from parnassus.shapley.attributions.attribution import explain_exactly
from parnassus.shapley.attributions.conditional_gaussian import ConditionalGaussianValue
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.value_functions import SingleGame
from parnassus.shapley.estimators.kernel_shap import weighted_regression
from parnassus.shapley.estimators.stopping import max_relative_error, max_standard_error

WEIGHTS = standard_normal(10, 3, seed=5)


def nonlinear_model(x: Tensor) -> Tensor:
    return torch.stack([(x @ WEIGHTS).tanh().sum(1), x[:, 0] * x[:, 1] * x[:, 2]], 1)


class CountingModel:
    """A model that counts the rows it evaluates."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.rows += len(x)
        return nonlinear_model(x)


X, BACKGROUND = standard_normal(3, 10), standard_normal(4, 10, seed=1)


def test_sampling_stops_at_the_tolerance_with_that_accuracy() -> None:
    value = InterventionalValue(nonlinear_model, BACKGROUND)
    exact = explain_exactly(value, X)
    counts = []
    for tolerance in (0.05, 0.01, 0.002):
        result = explain_to_tolerance(
            value, X, tolerance, max_coalitions=1_024, generator=torch.Generator().manual_seed(0)
        )
        assert max_standard_error(result) <= tolerance
        assert float((result.values - exact.values).square().mean().sqrt()) <= tolerance
        assert torch.allclose(result.prediction, exact.prediction, atol=1e-10)
        counts.append(result.evaluations)
    assert counts == sorted(counts)
    assert counts[0] < 300


def test_no_coalition_is_evaluated_twice() -> None:
    model = CountingModel()
    estimate = GrowingAttribution(
        InterventionalValue(model, BACKGROUND), X, weighted_regression, torch.Generator().manual_seed(0)
    )
    for count in (40, 80, 300):
        result = estimate(count)
        assert model.rows == result.evaluations * len(BACKGROUND) * len(X)
        assert estimate.sample is not None
        fresh = InterventionalValue(nonlinear_model, BACKGROUND).per_background_row(X, estimate.sample.coalitions)
        assert torch.allclose(estimate.worth[..., 1:-1], fresh, atol=1e-12)


def test_exhausted_budget_reports_the_remaining_error() -> None:
    result = explain_to_tolerance(InterventionalValue(nonlinear_model, BACKGROUND), X, 1e-9, max_coalitions=100)
    assert result.evaluations < 120
    assert max_standard_error(result) > 1e-9


def test_relative_error_criterion() -> None:
    value = InterventionalValue(lambda x: 1e6 * nonlinear_model(x), BACKGROUND)
    result = explain_to_tolerance(
        value, X, 0.1, max_coalitions=1_024, criterion=max_relative_error, generator=torch.Generator().manual_seed(0)
    )
    assert max_relative_error(result) <= 0.1 < max_standard_error(result)


def test_sufficient_budget_and_few_features_give_exact_values() -> None:
    value = InterventionalValue(nonlinear_model, BACKGROUND)
    result = explain_to_tolerance(value, X, 1e-12, max_coalitions=4_096)
    assert result.evaluations == 1_024
    assert torch.allclose(result.values, explain_exactly(value, X).values, atol=1e-9)
    few = InterventionalValue(lambda x: x.prod(1, keepdim=True), BACKGROUND[:, :3])
    assert max_standard_error(explain_to_tolerance(few, X[:, :3], 0.1, max_coalitions=100)) == 0.0


def test_rows_are_evaluated_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive_kernel_shap, "MAX_WORTHS", 100)
    monkeypatch.setattr(attribution, "MAX_WORTHS", 100)
    value = InterventionalValue(nonlinear_model, BACKGROUND)
    result = explain_to_tolerance(value, X, 0.1, max_coalitions=512, generator=torch.Generator().manual_seed(0))
    assert result.values.shape == (3, 2, 10)
    assert max_standard_error(result) <= 0.1


def test_games_without_a_background_are_supported() -> None:
    value = ConditionalGaussianValue(
        lambda x: nonlinear_model(torch.cat([x, x], 1)), standard_normal(50, 5, seed=2), num_draws=4
    )
    result = explain_to_tolerance(value, X[:, :5], 0.05, max_coalitions=40)
    assert torch.allclose(result.prediction, nonlinear_model(torch.cat([X[:, :5], X[:, :5]], 1)), atol=1e-10)
    assert SingleGame(value).players == 5


def test_zero_tolerance_raises_value_error() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        explain_to_tolerance(InterventionalValue(nonlinear_model, BACKGROUND), X, 0.0, max_coalitions=100)
