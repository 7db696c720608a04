"""Closed forms of linear models against enumeration, and invalid inputs."""

import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import Tensor, nn

from parnassus.probability import standard_normal
from parnassus.shapley.attributions.attribution import explain_exactly
from parnassus.shapley.attributions.conditional_gaussian import ConditionalGaussianValue
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.model_adapters import as_model
from parnassus.shapley.closed_forms import linear_shap as linear_shap_module
from parnassus.shapley.closed_forms.linear_shap import check_linear_model, conditional_linear_shap, linear_shap

WEIGHT, BIAS = standard_normal(2, 5), standard_normal(2, seed=1)
BACKGROUND, X = standard_normal(40, 5, seed=2) @ standard_normal(5, 5, seed=3), standard_normal(6, 5, seed=4)


def model(z: Tensor) -> Tensor:
    return z @ WEIGHT.mT + BIAS


def test_interventional_linear_shap_matches_enumeration() -> None:
    result, enumerated = (
        linear_shap(WEIGHT, BIAS, X, BACKGROUND),
        explain_exactly(InterventionalValue(model, BACKGROUND), X),
    )
    assert torch.allclose(result.values, enumerated.values, atol=1e-12)
    assert torch.allclose(result.base_values, enumerated.base_values, atol=1e-12)
    assert torch.allclose(result.prediction, model(X), atol=1e-12)
    assert result.evaluations == 0


def test_conditional_linear_shap_matches_enumeration() -> None:
    result = conditional_linear_shap(WEIGHT, BIAS, X, BACKGROUND)
    enumerated = explain_exactly(ConditionalGaussianValue(model, BACKGROUND, num_draws=2), X)
    assert torch.allclose(result.values, enumerated.values, atol=1e-10)
    assert torch.allclose(result.prediction, model(X), atol=1e-10)


def test_batches_do_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = conditional_linear_shap(WEIGHT, BIAS, X, BACKGROUND)
    monkeypatch.setattr(linear_shap_module, "REGRESSIONS_PER_BATCH", 5)
    assert torch.allclose(conditional_linear_shap(WEIGHT, BIAS, X, BACKGROUND).values, expected.values, atol=1e-14)


def test_unused_feature_has_conditional_but_no_interventional_value() -> None:
    first = standard_normal(500, 1, seed=5)
    background = torch.cat([first, first + 0.1 * standard_normal(500, 1, seed=6)], 1)
    weight, bias = torch.tensor([[1.0, 0.0]]).double(), torch.zeros(1).double()
    interventional = linear_shap(weight, bias, background[:3], background).values[:, 0]
    conditional = conditional_linear_shap(weight, bias, background[:3], background).values[:, 0]
    assert torch.equal(interventional[:, 1], torch.zeros(3).double())
    # it predicts the first feature, so they share its value
    assert torch.allclose(conditional[:, 1], interventional[:, 0] / 2, atol=0.1)


def test_collinear_and_constant_features_are_allowed_within_the_support() -> None:
    background, x = BACKGROUND.clone(), X.clone()
    background[:, 3], x[:, 3] = 2 * background[:, 1], 2 * x[:, 1]
    background[:, 4] = x[:, 4] = 1.0
    result = conditional_linear_shap(WEIGHT, BIAS, x, background)
    assert torch.allclose(result.prediction, model(x), atol=1e-10)
    assert float(result.values[..., 4].abs().max()) < 1e-12
    with pytest.raises(ValueError, match="row 2 does not"):
        conditional_linear_shap(WEIGHT, BIAS, x + torch.eye(6).double()[:, 2:3] * torch.eye(5).double()[4], background)


def test_single_feature_and_weights_of_estimators_and_modules() -> None:
    one = conditional_linear_shap(WEIGHT[:, :1], BIAS, X[:, :1], BACKGROUND[:, :1])
    assert torch.allclose(one.values, linear_shap(WEIGHT[:, :1], BIAS, X[:, :1], BACKGROUND[:, :1]).values)
    fitted = LinearRegression().fit(BACKGROUND.numpy(), model(BACKGROUND).numpy() + 1)
    result = linear_shap(torch.tensor(fitted.coef_), torch.tensor(fitted.intercept_), X, BACKGROUND)
    assert torch.allclose(result.prediction, as_model(fitted)(X), atol=1e-12)
    layer = nn.Linear(5, 3)
    result = linear_shap(layer.weight, layer.bias, X.float(), BACKGROUND.float())
    assert torch.allclose(result.prediction.float(), layer(X.float()), atol=1e-5)
    assert result.values.dtype == torch.float64


def test_invalid_inputs_raise_value_error() -> None:
    with pytest.raises(ValueError, match="same features"):
        check_linear_model(WEIGHT, BIAS, X[:, :4], BACKGROUND)
    with pytest.raises(ValueError, match="an entry for each output"):
        check_linear_model(WEIGHT, BIAS[:1], X, BACKGROUND)
    with pytest.raises(ValueError, match=r"two (background )?rows"):
        conditional_linear_shap(WEIGHT, BIAS, X, BACKGROUND[:1])
    with pytest.raises(ValueError, match="at most 16 features; got 9 rows, 20 features"):
        conditional_linear_shap(standard_normal(1, 20), BIAS[:1], standard_normal(2, 20), standard_normal(9, 20))
