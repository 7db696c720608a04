"""Closed forms of linear models against enumeration, and what they refuse."""

import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import Tensor, nn

from parnassus.probability import standard_normal
from parnassus.shapley.attributions.attribution import explain_exactly
from parnassus.shapley.attributions.conditional_gaussian import ConditionalGaussian
from parnassus.shapley.attributions.interventional import Interventional
from parnassus.shapley.attributions.model_adapters import as_model
from parnassus.shapley.closed_forms import linear_shap as linear_shap_module
from parnassus.shapley.closed_forms.linear_shap import conditional_linear_shap, linear_shap, validate_linear_model

WEIGHT, BIAS = standard_normal(2, 5), standard_normal(2, seed=1)
BACKGROUND, X = standard_normal(40, 5, seed=2) @ standard_normal(5, 5, seed=3), standard_normal(6, 5, seed=4)


def model(z: Tensor) -> Tensor:
    return z @ WEIGHT.mT + BIAS


def test_apart_it_is_the_weight_times_the_distance_from_the_mean() -> None:
    found, all_asked = (
        linear_shap(WEIGHT, BIAS, X, BACKGROUND),
        explain_exactly(Interventional(model, BACKGROUND), X),
    )
    assert torch.allclose(found.values, all_asked.values, atol=1e-12)
    assert torch.allclose(found.base_values, all_asked.base_values, atol=1e-12)
    assert torch.allclose(found.prediction, model(X), atol=1e-12)
    assert found.evaluations == 0


def test_given_what_is_known_it_is_what_enumeration_finds() -> None:
    found = conditional_linear_shap(WEIGHT, BIAS, X, BACKGROUND)
    all_asked = explain_exactly(ConditionalGaussian(model, BACKGROUND, num_draws=2), X)
    assert torch.allclose(found.values, all_asked.values, atol=1e-10)
    assert torch.allclose(found.prediction, model(X), atol=1e-10)


def test_batches_do_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = conditional_linear_shap(WEIGHT, BIAS, X, BACKGROUND)
    monkeypatch.setattr(linear_shap_module, "REGRESSIONS_PER_BATCH", 5)
    assert torch.allclose(conditional_linear_shap(WEIGHT, BIAS, X, BACKGROUND).values, whole.values, atol=1e-14)


def test_a_feature_that_the_model_ignores_is_paid_for_what_it_tells() -> None:
    first = standard_normal(500, 1, seed=5)
    background = torch.cat([first, first + 0.1 * standard_normal(500, 1, seed=6)], 1)
    only_first, nothing = torch.tensor([[1.0, 0.0]]).double(), torch.zeros(1).double()
    apart = linear_shap(only_first, nothing, background[:3], background).values[:, 0]
    given = conditional_linear_shap(only_first, nothing, background[:3], background).values[:, 0]
    assert torch.equal(apart[:, 1], torch.zeros(3).double())
    assert torch.allclose(given[:, 1], apart[:, 0] / 2, atol=0.1)  # it stands in for the first, so they share


def test_collinear_and_constant_features_are_allowed_within_the_support() -> None:
    background, x = BACKGROUND.clone(), X.clone()
    background[:, 3], x[:, 3] = 2 * background[:, 1], 2 * x[:, 1]
    background[:, 4] = x[:, 4] = 1.0
    found = conditional_linear_shap(WEIGHT, BIAS, x, background)
    assert torch.allclose(found.prediction, model(x), atol=1e-10)
    assert float(found.values[..., 4].abs().max()) < 1e-12
    with pytest.raises(ValueError, match="row 2 does not"):
        conditional_linear_shap(WEIGHT, BIAS, x + torch.eye(6).double()[:, 2:3] * torch.eye(5).double()[4], background)


def test_one_feature_and_weights_of_estimators_and_modules() -> None:
    one = conditional_linear_shap(WEIGHT[:, :1], BIAS, X[:, :1], BACKGROUND[:, :1])
    assert torch.allclose(one.values, linear_shap(WEIGHT[:, :1], BIAS, X[:, :1], BACKGROUND[:, :1]).values)
    fitted = LinearRegression().fit(BACKGROUND.numpy(), model(BACKGROUND).numpy() + 1)
    found = linear_shap(torch.tensor(fitted.coef_), torch.tensor(fitted.intercept_), X, BACKGROUND)
    assert torch.allclose(found.prediction, as_model(fitted)(X), atol=1e-12)
    layer = nn.Linear(5, 3)
    found = linear_shap(layer.weight, layer.bias, X.float(), BACKGROUND.float())
    assert torch.allclose(found.prediction.float(), layer(X.float()), atol=1e-5)
    assert found.values.dtype == torch.float64


def test_wrong_input_is_rejected() -> None:
    with pytest.raises(ValueError, match="same features"):
        validate_linear_model(WEIGHT, BIAS, X[:, :4], BACKGROUND)
    with pytest.raises(ValueError, match="an entry for each output"):
        validate_linear_model(WEIGHT, BIAS[:1], X, BACKGROUND)
    with pytest.raises(ValueError, match=r"two (background )?rows"):
        conditional_linear_shap(WEIGHT, BIAS, X, BACKGROUND[:1])
    with pytest.raises(ValueError, match="at most 16 features; got 9 rows, 20 features"):
        conditional_linear_shap(standard_normal(1, 20), BIAS[:1], standard_normal(2, 20), standard_normal(9, 20))
