"""Closed forms of linear models against enumeration, and what they refuse."""

import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import Tensor, nn

from parnassus.shapley import linear
from parnassus.shapley.attribution import explain_exactly
from parnassus.shapley.linear import checked, explain_linear, explain_linear_given
from parnassus.shapley.masking import ConditionalGaussian, Interventional
from parnassus.shapley.model import as_model


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


WEIGHT, BIAS = normals(2, 5), normals(2, seed=1)
BACKGROUND, X = normals(40, 5, seed=2) @ normals(5, 5, seed=3), normals(6, 5, seed=4)


def model(z: Tensor) -> Tensor:
    return z @ WEIGHT.mT + BIAS


def test_apart_it_is_the_weight_times_the_distance_from_the_mean() -> None:
    found, all_asked = (
        explain_linear(WEIGHT, BIAS, X, BACKGROUND),
        explain_exactly(Interventional(model, BACKGROUND), X),
    )
    assert torch.allclose(found.values, all_asked.values, atol=1e-12)
    assert torch.allclose(found.base, all_asked.base, atol=1e-12)
    assert torch.allclose(found.prediction, model(X), atol=1e-12)
    assert found.coalitions == 0


def test_given_what_is_known_it_is_what_enumeration_finds() -> None:
    found = explain_linear_given(WEIGHT, BIAS, X, BACKGROUND)
    all_asked = explain_exactly(ConditionalGaussian(model, BACKGROUND, draws=2), X)
    assert torch.allclose(found.values, all_asked.values, atol=1e-10)
    assert torch.allclose(found.prediction, model(X), atol=1e-10)


def test_portions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = explain_linear_given(WEIGHT, BIAS, X, BACKGROUND)
    monkeypatch.setattr(linear, "TOGETHER", 5)
    assert torch.allclose(explain_linear_given(WEIGHT, BIAS, X, BACKGROUND).values, whole.values, atol=1e-14)


def test_a_feature_that_the_model_ignores_is_paid_for_what_it_tells() -> None:
    first = normals(500, 1, seed=5)
    background = torch.cat([first, first + 0.1 * normals(500, 1, seed=6)], 1)
    only_first, nothing = torch.tensor([[1.0, 0.0]]).double(), torch.zeros(1).double()
    apart = explain_linear(only_first, nothing, background[:3], background).values[:, 0]
    given = explain_linear_given(only_first, nothing, background[:3], background).values[:, 0]
    assert torch.equal(apart[:, 1], torch.zeros(3).double())
    assert torch.allclose(given[:, 1], apart[:, 0] / 2, atol=0.1)  # it stands in for the first, so they share


def test_twins_and_constants_are_allowed_but_not_the_impossible() -> None:
    background, x = BACKGROUND.clone(), X.clone()
    background[:, 3], x[:, 3] = 2 * background[:, 1], 2 * x[:, 1]
    background[:, 4] = x[:, 4] = 1.0
    found = explain_linear_given(WEIGHT, BIAS, x, background)
    assert torch.allclose(found.prediction, model(x), atol=1e-10)
    assert float(found.values[..., 4].abs().max()) < 1e-12
    with pytest.raises(ValueError, match="row 2 cannot happen"):
        explain_linear_given(WEIGHT, BIAS, x + torch.eye(6).double()[:, 2:3] * torch.eye(5).double()[4], background)


def test_one_feature_and_weights_of_estimators_and_modules() -> None:
    one = explain_linear_given(WEIGHT[:, :1], BIAS, X[:, :1], BACKGROUND[:, :1])
    assert torch.allclose(one.values, explain_linear(WEIGHT[:, :1], BIAS, X[:, :1], BACKGROUND[:, :1]).values)
    fitted = LinearRegression().fit(BACKGROUND.numpy(), model(BACKGROUND).numpy() + 1)
    found = explain_linear(torch.tensor(fitted.coef_), torch.tensor(fitted.intercept_), X, BACKGROUND)
    assert torch.allclose(found.prediction, as_model(fitted)(X), atol=1e-12)
    layer = nn.Linear(5, 3)
    found = explain_linear(layer.weight, layer.bias, X.float(), BACKGROUND.float())
    assert torch.allclose(found.prediction.float(), layer(X.float()), atol=1e-5)
    assert found.values.dtype == torch.float64


def test_wrong_input_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="same features"):
        checked(WEIGHT, BIAS, X[:, :4], BACKGROUND)
    with pytest.raises(ValueError, match="an entry for each output"):
        checked(WEIGHT, BIAS[:1], X, BACKGROUND)
    with pytest.raises(ValueError, match="two rows"):
        explain_linear_given(WEIGHT, BIAS, X, BACKGROUND[:1])
    with pytest.raises(ValueError, match="at most 16 features; got 9 rows, 20 features"):
        explain_linear_given(normals(1, 20), BIAS[:1], normals(2, 20), normals(9, 20))
