"""Models: modules, estimators, functions of arrays and of tensors."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from parnassus.shapley.attributions.attribution import explain, explain_exactly
from parnassus.shapley.attributions.linear_first_layer import interventional_value_function
from parnassus.shapley.attributions.model_adapters import ModelError, as_model, as_rows

X = torch.randn(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


class Halves:
    """An estimator of probabilities."""

    def predict_proba(self, x: object) -> object:
        first = np.asarray(x)[:, 0] > 0
        return np.stack([first, ~first], 1).astype(float)


class Sums:
    """An estimator of numbers."""

    def predict(self, x: object) -> object:
        return np.asarray(x).sum(1)


def test_functions_of_tensors_and_of_arrays() -> None:
    assert torch.equal(as_model(lambda x: x.sum(1))(X), X.sum(1, keepdim=True))

    def of_arrays(x: object) -> object:
        if isinstance(x, Tensor):
            raise TypeError("arrays only")
        return np.asarray(x) * 2

    ask = as_model(of_arrays)
    assert torch.equal(ask(X), 2 * X)
    assert torch.equal(ask(X), 2 * X)


def test_estimators_give_probabilities_or_predictions() -> None:
    assert as_model(Halves())(X).shape == (7, 2)
    assert torch.allclose(as_model(Sums())(X), X.sum(1, keepdim=True))


def test_methods_that_an_instance_lacks_are_not_used() -> None:
    """As scikit-learn's pipelines and voters, whose last step decides."""

    class Pipeline(Sums):
        @property
        def predict_proba(self) -> object:
            raise AttributeError("the last step has no probabilities")

    assert torch.allclose(as_model(Pipeline())(X), X.sum(1, keepdim=True))


def test_a_module_is_evaluated_in_evaluation_mode_and_restored() -> None:
    module = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5))
    answers = as_model(module)(X)
    assert torch.equal(answers, as_model(module)(X))
    assert not answers.requires_grad
    assert answers.dtype == X.dtype
    assert module.training


def test_ids_stay_integers_and_outputs_are_floating_point() -> None:
    ids = torch.tensor([[1, 2], [0, 3]])
    embedding = nn.Sequential(nn.Embedding(4, 3), nn.Flatten())
    assert torch.equal(as_model(embedding)(ids), embedding(ids).detach())
    assert as_model(lambda x: x.sum(1))(ids).tolist() == [[3.0], [3.0]]
    assert as_model(lambda x: x.sum(1))(ids).is_floating_point()


def test_object_arrays_of_numbers_are_accepted() -> None:
    said = as_model(lambda x: np.array([Fraction(1, 2)] * len(x), dtype=object))(X)
    assert torch.equal(said, torch.full((7, 1), 0.5, dtype=X.dtype))


def test_rows_may_be_arrays() -> None:
    assert as_rows(X) is X
    assert torch.equal(as_rows(X.numpy()), X)
    assert as_rows(np.ones((2, 3), dtype=int)).dtype == torch.float64
    value = interventional_value_function(Sums(), X.numpy())
    assert torch.equal(explain_exactly(value, X[:2].numpy()).values, explain_exactly(value, X[:2]).values)
    few, same = (explain(value, rows, 4, generator=torch.Generator().manual_seed(0)) for rows in (X, X.numpy()))
    assert torch.equal(few.values, same.values)


def test_what_is_not_a_table_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"got shape \(3,\); for one row x give x\[None\]"):
        as_rows(X[0])
    with pytest.raises(ValueError, match=r"rows of features are needed; got shape \(0, 3\)"):
        as_rows(X[:0])


def test_wrong_models_are_rejected() -> None:
    with pytest.raises(TypeError, match="a module, an estimator or a function"):
        as_model(3.0)
    with pytest.raises(ModelError, match="a number or a row of numbers for each input"):
        as_model(lambda x: x[:2])(X)
    with pytest.raises(ModelError, match="not labels such as 'ill'; use predict_proba"):
        as_model(lambda x: np.array(["ill"] * len(x)))(X)
    with pytest.raises(ModelError, match="not labels such as 'ill'; use predict_proba"):
        as_model(lambda x: np.array(["ill"] * len(x), dtype=object))(X)  # as classifiers of such labels give them
    with pytest.raises(ModelError, match="must return numbers; got NoneType"):
        as_model(lambda _: None)(X)
    with pytest.raises(ModelError, match="must return numbers; got complex"):
        as_model(lambda x: np.full(len(x), 1j))(X)
    with pytest.raises(ModelError, match=r"for each input; got shape \(7, 0\) for 7 inputs"):
        as_model(lambda x: x[:, :0])(X)
    with pytest.raises(ModelError, match="returned nan"):
        as_model(lambda x: x[:, 0].log().sqrt())(X)


def test_a_module_is_left_as_it_was() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    module[2].eval()
    ask = as_model(module)
    x = torch.randn(4, 3)
    assert torch.equal(ask(x), ask(x))
    assert [part.training for part in module.modules()] == [True, True, True, False]
