"""Models: modules, estimators, functions of arrays and of tensors."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from parnassus.probability import standard_normal
from parnassus.shapley.attributions.attribution import explain, explain_exactly
from parnassus.shapley.attributions.linear_first_layer import interventional_value_function
from parnassus.shapley.attributions.model_adapters import ModelError, as_model, as_rows

X = standard_normal(7, 3)


class SignClassifier:
    """A classifier with `predict_proba`."""

    def predict_proba(self, x: object) -> object:
        first = np.asarray(x)[:, 0] > 0
        return np.stack([first, ~first], 1).astype(float)


class SumRegressor:
    """A regressor with `predict`."""

    def predict(self, x: object) -> object:
        return np.asarray(x).sum(1)


def test_functions_of_tensors_and_of_arrays() -> None:
    assert torch.equal(as_model(lambda x: x.sum(1))(X), X.sum(1, keepdim=True))

    def array_function(x: object) -> object:
        if isinstance(x, Tensor):
            raise TypeError("arrays only")
        return np.asarray(x) * 2

    model = as_model(array_function)
    assert torch.equal(model(X), 2 * X)
    assert torch.equal(model(X), 2 * X)


def test_estimators_return_probabilities_or_predictions() -> None:
    assert as_model(SignClassifier())(X).shape == (7, 2)
    assert torch.allclose(as_model(SumRegressor())(X), X.sum(1, keepdim=True))


def test_conditionally_missing_methods_are_not_used() -> None:
    """As in scikit-learn's pipelines, where the last step decides."""

    class Pipeline(SumRegressor):
        @property
        def predict_proba(self) -> object:
            raise AttributeError("the last step has no probabilities")

    assert torch.allclose(as_model(Pipeline())(X), X.sum(1, keepdim=True))


def test_module_is_evaluated_in_eval_mode_and_restored() -> None:
    module = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5))
    outputs = as_model(module)(X)
    assert torch.equal(outputs, as_model(module)(X))
    assert not outputs.requires_grad
    assert outputs.dtype == X.dtype
    assert module.training


def test_ids_stay_integers_and_outputs_are_floating_point() -> None:
    ids = torch.tensor([[1, 2], [0, 3]])
    embedding = nn.Sequential(nn.Embedding(4, 3), nn.Flatten())
    assert torch.equal(as_model(embedding)(ids), embedding(ids).detach())
    assert as_model(lambda x: x.sum(1))(ids).tolist() == [[3.0], [3.0]]
    assert as_model(lambda x: x.sum(1))(ids).is_floating_point()


def test_object_arrays_of_numbers_are_accepted() -> None:
    outputs = as_model(lambda x: np.array([Fraction(1, 2)] * len(x), dtype=object))(X)
    assert torch.equal(outputs, torch.full((7, 1), 0.5, dtype=X.dtype))


def test_rows_may_be_arrays() -> None:
    assert as_rows(X) is X
    assert torch.equal(as_rows(X.numpy()), X)
    assert as_rows(np.ones((2, 3), dtype=int)).dtype == torch.float64
    value = interventional_value_function(SumRegressor(), X.numpy())
    assert torch.equal(explain_exactly(value, X[:2].numpy()).values, explain_exactly(value, X[:2]).values)
    from_tensor, from_array = (
        explain(value, rows, 4, generator=torch.Generator().manual_seed(0)) for rows in (X, X.numpy())
    )
    assert torch.equal(from_tensor.values, from_array.values)


def test_inputs_that_are_not_two_dimensional_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"got shape \(3,\); for one row x give x\[None\]"):
        as_rows(X[0])
    with pytest.raises(ValueError, match=r"rows of features are needed; got shape \(0, 3\)"):
        as_rows(X[:0])


def test_invalid_models_raise_errors() -> None:
    with pytest.raises(TypeError, match="a module, an estimator or a function"):
        as_model(3.0)
    with pytest.raises(ModelError, match="a number or a row of numbers for each input"):
        as_model(lambda x: x[:2])(X)
    with pytest.raises(ModelError, match="not labels such as 'ill'; use predict_proba"):
        as_model(lambda x: np.array(["ill"] * len(x)))(X)
    with pytest.raises(ModelError, match="not labels such as 'ill'; use predict_proba"):
        # the type that classifiers of string labels return
        as_model(lambda x: np.array(["ill"] * len(x), dtype=object))(X)
    with pytest.raises(ModelError, match="must return numbers; got NoneType"):
        as_model(lambda _: None)(X)
    with pytest.raises(ModelError, match="must return numbers; got complex"):
        as_model(lambda x: np.full(len(x), 1j))(X)
    with pytest.raises(ModelError, match=r"for each input; got shape \(7, 0\) for 7 inputs"):
        as_model(lambda x: x[:, :0])(X)
    with pytest.raises(ModelError, match="returned nan"):
        as_model(lambda x: x[:, 0].log().sqrt())(X)


def test_training_flags_of_submodules_are_restored() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    module[2].eval()
    model = as_model(module)
    x = torch.randn(4, 3)
    assert torch.equal(model(x), model(x))
    assert [submodule.training for submodule in module.modules()] == [True, True, True, False]
