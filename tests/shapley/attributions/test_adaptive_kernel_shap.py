"""Kernel SHAP to a tolerance: evaluations are reused, errors reach the tolerance, the budget is respected."""

import pytest
import torch
from torch import Tensor

from parnassus.probability import standard_normal
from parnassus.shapley.attributions import adaptive_kernel_shap, attribution
from parnassus.shapley.attributions.adaptive_kernel_shap import GrowingAttribution, explain_to_tolerance
from parnassus.shapley.attributions.attribution import explain_exactly
from parnassus.shapley.attributions.conditional_gaussian import ConditionalGaussian
from parnassus.shapley.attributions.interventional import Interventional
from parnassus.shapley.attributions.value_functions import SingleGame
from parnassus.shapley.estimators.kernel_shap import weighted_regression
from parnassus.shapley.estimators.stopping import max_relative_error, max_standard_error

WEIGHTS = standard_normal(10, 3, seed=5)


def curved(x: Tensor) -> Tensor:
    return torch.stack([(x @ WEIGHTS).tanh().sum(1), x[:, 0] * x[:, 1] * x[:, 2]], 1)


class Counted:
    """A model that counts the rows it was asked about."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.rows += len(x)
        return curved(x)


X, BACKGROUND = standard_normal(3, 10), standard_normal(4, 10, seed=1)


def test_it_stops_at_the_tolerance_and_has_that_accuracy() -> None:
    value = Interventional(curved, BACKGROUND)
    exact = explain_exactly(value, X)
    counts = []
    for error in (0.05, 0.01, 0.002):
        found = explain_to_tolerance(value, X, error, max_coalitions=1_024, generator=torch.Generator().manual_seed(0))
        assert max_standard_error(found) <= error
        assert float((found.values - exact.values).square().mean().sqrt()) <= error
        assert torch.allclose(found.prediction, exact.prediction, atol=1e-10)
        counts.append(found.evaluations)
    assert counts == sorted(counts)
    assert counts[0] < 300


def test_no_coalition_is_evaluated_twice() -> None:
    model = Counted()
    growing = GrowingAttribution(
        Interventional(model, BACKGROUND), X, weighted_regression, torch.Generator().manual_seed(0)
    )
    for count in (40, 80, 300):
        found = growing(count)
        assert model.rows == found.evaluations * len(BACKGROUND) * len(X)
        assert growing.sample is not None
        fresh = Interventional(curved, BACKGROUND).per_background_row(X, growing.sample.coalitions)
        assert torch.allclose(growing.worth[..., 1:-1], fresh, atol=1e-12)


def test_the_budget_ends_it_and_says_so() -> None:
    found = explain_to_tolerance(Interventional(curved, BACKGROUND), X, 1e-9, max_coalitions=100)
    assert found.evaluations < 120
    assert max_standard_error(found) > 1e-9


def test_errors_beside_the_spread_of_values() -> None:
    value = Interventional(lambda x: 1e6 * curved(x), BACKGROUND)
    found = explain_to_tolerance(
        value, X, 0.1, max_coalitions=1_024, criterion=max_relative_error, generator=torch.Generator().manual_seed(0)
    )
    assert max_relative_error(found) <= 0.1 < max_standard_error(found)


def test_a_budget_for_all_is_exact_and_few_features_are_at_once() -> None:
    value = Interventional(curved, BACKGROUND)
    found = explain_to_tolerance(value, X, 1e-12, max_coalitions=4_096)
    assert found.evaluations == 1_024
    assert torch.allclose(found.values, explain_exactly(value, X).values, atol=1e-9)
    few = Interventional(lambda x: x.prod(1, keepdim=True), BACKGROUND[:, :3])
    assert max_standard_error(explain_to_tolerance(few, X[:, :3], 0.1, max_coalitions=100)) == 0.0


def test_portions_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive_kernel_shap, "MAX_WORTHS", 100)
    monkeypatch.setattr(attribution, "MAX_WORTHS", 100)
    value = Interventional(curved, BACKGROUND)
    found = explain_to_tolerance(value, X, 0.1, max_coalitions=512, generator=torch.Generator().manual_seed(0))
    assert found.values.shape == (3, 2, 10)
    assert max_standard_error(found) <= 0.1


def test_games_without_a_background_too() -> None:
    value = ConditionalGaussian(lambda x: curved(torch.cat([x, x], 1)), standard_normal(50, 5, seed=2), num_draws=4)
    found = explain_to_tolerance(value, X[:, :5], 0.05, max_coalitions=40)
    assert torch.allclose(found.prediction, curved(torch.cat([X[:, :5], X[:, :5]], 1)), atol=1e-10)
    assert SingleGame(value).players == 5


def test_a_tolerance_of_zero_is_rejected() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        explain_to_tolerance(Interventional(curved, BACKGROUND), X, 0.0, max_coalitions=100)
