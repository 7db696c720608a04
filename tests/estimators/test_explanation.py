"""`explain`: Shapley values of functions, estimators and modules."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_iris
from torch import nn

from parnassus.estimators import Classifier, explain

X = np.random.default_rng(0).normal(size=(30, 4))
WEIGHTS = np.array([1.0, -2.0, 0.0, 0.5])


class DataFrame:
    """The protocol of pandas."""

    columns = ("age", "income", "height", "weight")

    def to_numpy(self) -> NDArray[Any]:
        return X

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return X


def test_linear_models_have_the_closed_form() -> None:
    """φ_j = w_j (x_j − x̄_j)."""
    explanation = explain(lambda rows: rows @ WEIGHTS, DataFrame())
    np.testing.assert_allclose(explanation.values, WEIGHTS * (X - X.mean(0)), atol=1e-12)
    np.testing.assert_allclose(explanation.predictions, X @ WEIGHTS, atol=1e-12)
    assert not explanation.errors.any()
    assert explanation.feature_names == DataFrame.columns
    assert "largest on average: income" in repr(explanation)
    assert "income" in explanation._repr_html_()
    assert explanation.plot(3)._repr_html_() != explanation._repr_html_()


def test_modules_and_other_backgrounds() -> None:
    module = nn.Linear(4, 2)
    found = explain(module, X[:5], background=X[10:], output=1)
    weights = module.weight[1].detach().double().numpy()
    np.testing.assert_allclose(found.values, weights * (X[:5] - X[10:].mean(0)), atol=1e-5)


def test_estimators_are_explained_by_their_probabilities() -> None:
    x, y = load_iris(return_X_y=True)
    model = Classifier(hidden=(8,), steps=50, learning_rate=1e-2, device="cpu", verbose=False).fit(x, y)
    found = explain(model, x[:3], background=x[::10], output=2)
    np.testing.assert_allclose(found.predictions, model.predict_proba(x[:3])[:, 2], atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": X[0]}, r"x must have the axes \(rows, features\); got shape \(4,\): use x\[None\] for one row"),
        ({"x": X[:1]}, "the background must have at least two rows; got one: give background"),
        ({"x": X, "output": 1}, "output must be from 0 to 0; got output=1"),
        ({"x": X, "feature_names": ["a"]}, "must have one name per feature; got 1 for 4 features"),
    ],
)
def test_what_does_not_fit_raises_value_error(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explain(lambda rows: torch.as_tensor(rows @ WEIGHTS), **arguments)
