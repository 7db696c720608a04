"""Attributions: exact, estimated, of one feature, of constant features, models that are rejected."""

import pytest
import torch
from torch import Tensor

from parnassus.probability import standard_normal
from parnassus.shapley.attributions import attribution
from parnassus.shapley.attributions.attribution import average_repeats, explain, explain_exactly
from parnassus.shapley.attributions.interventional import Interventional
from parnassus.shapley.attributions.model_adapters import ModelError, as_model
from parnassus.shapley.attributions.value_functions import SingleGame
from parnassus.shapley.estimators.kernel_shap import weighted_regression


def curved(x: Tensor) -> Tensor:
    return torch.stack([(x[:, :-1] * x[:, 1:]).sum(1), x.tanh().sum(1)], 1)


def test_a_product_is_shared_by_its_factors() -> None:
    value = Interventional(lambda x: x[:, :1] * x[:, 1:2], torch.zeros(1, 3, dtype=torch.float64))
    parts = explain_exactly(value, torch.tensor([[2.0, 3.0, 9.0]], dtype=torch.float64))
    assert parts.values[0, 0].tolist() == pytest.approx([3.0, 3.0, 0.0])
    assert parts.importance.tolist() == [pytest.approx([3.0, 3.0, 0.0])]


def test_an_estimate_is_within_its_errors_and_sums_up() -> None:
    x, background = standard_normal(6, 11), standard_normal(8, 11, seed=1)
    value = Interventional(curved, background)
    exact = explain_exactly(value, x)
    found = explain(value, x, 200, generator=torch.Generator().manual_seed(0))
    assert found.evaluations < 220
    assert torch.allclose(found.prediction, curved(x))
    sure = (found.values - exact.values).abs() <= 4 * found.errors + 1e-9
    assert float(sure.double().mean()) > 0.97


def test_a_budget_for_all_is_exact() -> None:
    x, value = standard_normal(2, 4), Interventional(curved, standard_normal(3, 4, seed=1))
    assert torch.equal(explain(value, x, 16).values, explain_exactly(value, x).values)


def test_one_feature_and_constant_ones() -> None:
    one = explain(Interventional(lambda x: x.square(), standard_normal(5, 1)), standard_normal(3, 1, seed=1), 2)
    assert torch.allclose(one.prediction, standard_normal(3, 1, seed=1).square())
    flat = torch.ones(5, 3, dtype=torch.float64)
    assert float(explain_exactly(Interventional(curved, flat), flat[:1]).values.abs().max()) < 1e-12


def test_coalitions_of_its_own_for_each_background_row_err_less() -> None:
    """As often as one set for all, at as many questions: the errors of the rows cancel."""
    x, background = standard_normal(4, 11), standard_normal(30, 11, seed=1)
    value = Interventional(lambda z: (z.roll(1, 1) * z * z.roll(-1, 1)).sum(1, keepdim=True), background)
    exact = explain_exactly(value, x).values
    missed = []
    for asked in (value, SingleGame(value)):
        found = [
            explain(asked, x, 120, solver=weighted_regression, generator=torch.Generator().manual_seed(seed))
            for seed in range(4)
        ]
        missed.append(float(torch.stack([each.values - exact for each in found]).square().mean().sqrt()))
        said = float(torch.stack([each.errors for each in found]).square().mean().sqrt())
        assert said == pytest.approx(missed[-1], rel=0.3)
    assert missed[0] < 0.7 * missed[1]


def test_portions_of_rows_and_background_change_nothing_that_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = standard_normal(12, seed=3)
    x, background = standard_normal(5, 12), standard_normal(7, 12, seed=1)
    value = Interventional(lambda z: (z @ parts)[:, None], background)
    monkeypatch.setattr(attribution, "MAX_WORTHS", 1_500)
    found = explain(value, x, 60)
    assert torch.allclose(found.values[:, 0], parts * (x - background.mean(0)), atol=1e-9)
    assert torch.allclose(found.base_values[:, 0], (background @ parts).mean().expand(5), atol=1e-9)
    assert float(found.errors.max()) < 1e-9


def test_a_background_of_one_row_and_more_features_than_rows() -> None:
    x, background = standard_normal(2, 40), standard_normal(1, 40, seed=1)
    value = Interventional(curved, background)
    found = explain(value, x, 300, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(found.prediction, curved(x), atol=1e-10)
    assert torch.allclose(found.values[:, 1], x.tanh() - background.tanh(), atol=1e-9)
    assert torch.allclose(found.base_values, curved(background).expand(2, -1), atol=1e-10)


def test_constant_features_get_nothing_beyond_their_errors() -> None:
    x, background = standard_normal(3, 12), standard_normal(6, 12, seed=1)
    background[:, 4] = x[:, 4] = 2.0
    found = explain(Interventional(curved, background), x, 400, generator=torch.Generator().manual_seed(0))
    assert bool((found.values[..., 4].abs() <= 4 * found.errors[..., 4] + 1e-9).all())


def test_a_budget_below_the_number_of_features_says_that_nothing_is_known() -> None:
    found = explain(Interventional(curved, standard_normal(3, 20)), standard_normal(2, 20, seed=1), 20)
    assert bool(found.errors.isinf().all())
    assert torch.allclose(found.prediction, curved(standard_normal(2, 20, seed=1)), atol=1e-10)


def test_models_and_sizes_of_the_wrong_kind_are_rejected() -> None:
    with pytest.raises(ModelError, match="must be deterministic"):
        explain_exactly(
            Interventional(lambda x: torch.rand(len(x), 1).to(x), standard_normal(4, 3)), standard_normal(1, 3)
        )
    with pytest.raises(ModelError, match="must be deterministic"):
        explain(Interventional(lambda x: torch.rand(len(x), 1).to(x), standard_normal(4, 9)), standard_normal(1, 9), 60)
    with pytest.raises(ModelError, match=r"must not depend on the other rows of its batch, .* alone it is"):
        explain(
            Interventional(lambda x: (x - x.mean(0)).sum(1, keepdim=True), standard_normal(4, 9)),
            standard_normal(1, 9),
            60,
        )
    with pytest.raises(ModelError, match="returned"):
        explain(Interventional(as_model(lambda x: x.log().sum(1)), standard_normal(4, 9)), standard_normal(1, 9), 60)
    with pytest.raises(ValueError, match="at least 2 coalitions"):
        explain(Interventional(curved, standard_normal(4, 9)), standard_normal(1, 9), 1)
    with pytest.raises(ValueError, match="at most 24"):
        explain_exactly(Interventional(curved, standard_normal(2, 30)), standard_normal(1, 30))


def test_one_repeat_has_no_spread() -> None:
    with pytest.raises(ValueError, match="at least two attributions; got 1"):
        average_repeats(
            [explain_exactly(Interventional(lambda x: x.sum(1, keepdim=True), torch.eye(2)), torch.ones(1, 2))]
        )
