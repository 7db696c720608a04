"""Attributions: exact, estimated, one feature, constant features, invalid models."""

import pytest
import torch
from torch import Tensor

from parnassus.probability import standard_normal
from parnassus.shapley.attributions import attribution
from parnassus.shapley.attributions.attribution import average_repeats, explain, explain_exactly
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.model_adapters import ModelError, as_model
from parnassus.shapley.attributions.value_functions import SingleGame
from parnassus.shapley.estimators.kernel_shap import weighted_regression


def nonlinear_model(x: Tensor) -> Tensor:
    return torch.stack([(x[:, :-1] * x[:, 1:]).sum(1), x.tanh().sum(1)], 1)


def test_factors_of_a_product_share_its_value_equally() -> None:
    value = InterventionalValue(lambda x: x[:, :1] * x[:, 1:2], torch.zeros(1, 3, dtype=torch.float64))
    result = explain_exactly(value, torch.tensor([[2.0, 3.0, 9.0]], dtype=torch.float64))
    assert result.values[0, 0].tolist() == pytest.approx([3.0, 3.0, 0.0])
    assert result.importance.tolist() == [pytest.approx([3.0, 3.0, 0.0])]


def test_estimates_are_within_their_errors_and_efficient() -> None:
    x, background = standard_normal(6, 11), standard_normal(8, 11, seed=1)
    value = InterventionalValue(nonlinear_model, background)
    exact = explain_exactly(value, x)
    result = explain(value, x, 200, generator=torch.Generator().manual_seed(0))
    assert result.evaluations < 220
    assert torch.allclose(result.prediction, nonlinear_model(x))
    is_covered = (result.values - exact.values).abs() <= 4 * result.errors + 1e-9
    assert float(is_covered.double().mean()) > 0.97


def test_sufficient_budget_gives_exact_values() -> None:
    x, value = standard_normal(2, 4), InterventionalValue(nonlinear_model, standard_normal(3, 4, seed=1))
    assert torch.equal(explain(value, x, 16).values, explain_exactly(value, x).values)


def test_single_feature_and_constant_features() -> None:
    single = explain(InterventionalValue(lambda x: x.square(), standard_normal(5, 1)), standard_normal(3, 1, seed=1), 2)
    assert torch.allclose(single.prediction, standard_normal(3, 1, seed=1).square())
    constant = torch.ones(5, 3, dtype=torch.float64)
    assert (
        float(explain_exactly(InterventionalValue(nonlinear_model, constant), constant[:1]).values.abs().max()) < 1e-12
    )


def test_separate_coalitions_per_background_row_reduce_the_error() -> None:
    """At the same number of evaluations, since the errors of the rows cancel."""
    x, background = standard_normal(4, 11), standard_normal(30, 11, seed=1)
    value = InterventionalValue(lambda z: (z.roll(1, 1) * z * z.roll(-1, 1)).sum(1, keepdim=True), background)
    exact = explain_exactly(value, x).values
    actual_errors = []
    for game in (value, SingleGame(value)):
        attributions = [
            explain(game, x, 120, solver=weighted_regression, generator=torch.Generator().manual_seed(seed))
            for seed in range(4)
        ]
        actual_errors.append(
            float(torch.stack([attribution.values - exact for attribution in attributions]).square().mean().sqrt())
        )
        reported = float(torch.stack([attribution.errors for attribution in attributions]).square().mean().sqrt())
        assert reported == pytest.approx(actual_errors[-1], rel=0.3)
    assert actual_errors[0] < 0.7 * actual_errors[1]


def test_batches_of_rows_and_background_keep_linear_models_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = standard_normal(12, seed=3)
    x, background = standard_normal(5, 12), standard_normal(7, 12, seed=1)
    value = InterventionalValue(lambda z: (z @ weights)[:, None], background)
    monkeypatch.setattr(attribution, "MAX_WORTHS", 1_500)
    result = explain(value, x, 60)
    assert torch.allclose(result.values[:, 0], weights * (x - background.mean(0)), atol=1e-9)
    assert torch.allclose(result.base_values[:, 0], (background @ weights).mean().expand(5), atol=1e-9)
    assert float(result.errors.max()) < 1e-9


def test_single_background_row_with_more_features_than_rows() -> None:
    x, background = standard_normal(2, 40), standard_normal(1, 40, seed=1)
    value = InterventionalValue(nonlinear_model, background)
    result = explain(value, x, 300, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(result.prediction, nonlinear_model(x), atol=1e-10)
    assert torch.allclose(result.values[:, 1], x.tanh() - background.tanh(), atol=1e-9)
    assert torch.allclose(result.base_values, nonlinear_model(background).expand(2, -1), atol=1e-10)


def test_constant_features_have_zero_attribution_within_their_errors() -> None:
    x, background = standard_normal(3, 12), standard_normal(6, 12, seed=1)
    background[:, 4] = x[:, 4] = 2.0
    result = explain(
        InterventionalValue(nonlinear_model, background), x, 400, generator=torch.Generator().manual_seed(0)
    )
    assert bool((result.values[..., 4].abs() <= 4 * result.errors[..., 4] + 1e-9).all())


def test_budget_below_the_number_of_features_gives_infinite_errors() -> None:
    result = explain(InterventionalValue(nonlinear_model, standard_normal(3, 20)), standard_normal(2, 20, seed=1), 20)
    assert bool(result.errors.isinf().all())
    assert torch.allclose(result.prediction, nonlinear_model(standard_normal(2, 20, seed=1)), atol=1e-10)


def test_invalid_models_and_sizes_raise_errors() -> None:
    with pytest.raises(ModelError, match="must be deterministic"):
        explain_exactly(
            InterventionalValue(lambda x: torch.rand(len(x), 1).to(x), standard_normal(4, 3)), standard_normal(1, 3)
        )
    with pytest.raises(ModelError, match="must be deterministic"):
        explain(
            InterventionalValue(lambda x: torch.rand(len(x), 1).to(x), standard_normal(4, 9)), standard_normal(1, 9), 60
        )
    with pytest.raises(ModelError, match=r"must not depend on the other rows of its batch, .* alone it is"):
        explain(
            InterventionalValue(lambda x: (x - x.mean(0)).sum(1, keepdim=True), standard_normal(4, 9)),
            standard_normal(1, 9),
            60,
        )
    with pytest.raises(ModelError, match="returned"):
        explain(
            InterventionalValue(as_model(lambda x: x.log().sum(1)), standard_normal(4, 9)), standard_normal(1, 9), 60
        )
    with pytest.raises(ValueError, match="at least 2 coalitions"):
        explain(InterventionalValue(nonlinear_model, standard_normal(4, 9)), standard_normal(1, 9), 1)
    with pytest.raises(ValueError, match="at most 24"):
        explain_exactly(InterventionalValue(nonlinear_model, standard_normal(2, 30)), standard_normal(1, 30))


def test_average_of_one_repeat_raises_value_error() -> None:
    with pytest.raises(ValueError, match="at least two attributions; got 1"):
        average_repeats(
            [explain_exactly(InterventionalValue(lambda x: x.sum(1, keepdim=True), torch.eye(2)), torch.ones(1, 2))]
        )
