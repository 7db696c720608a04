"""Softmax regression against autograd and scikit-learn."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch.func import jacrev
from torch.nn import functional

from parnassus.layers import (
    SoftmaxRegression,
    count_parameters,
    cross_entropy_gradient,
    dense_classifier,
    softmax_regression_gradient,
    softmax_regression_hessian,
)

torch.manual_seed(0)
X = torch.randn(60, 3, dtype=torch.float64)
LABELS = torch.randint(3, (60,))
Y = functional.one_hot(LABELS, 3).double()
THETA = torch.randn(3, 3, dtype=torch.float64)


def mean_loss(theta: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(X @ theta, LABELS)


def test_gradient_and_hessian_match_autograd() -> None:
    torch.testing.assert_close(softmax_regression_gradient(THETA, X, Y), jacrev(mean_loss)(THETA))
    torch.testing.assert_close(softmax_regression_hessian(THETA, X), jacrev(jacrev(mean_loss))(THETA))
    logits = X @ THETA
    expected = jacrev(lambda o: functional.cross_entropy(o, LABELS, reduction="sum"))(logits)
    torch.testing.assert_close(cross_entropy_gradient(logits, Y), expected)


@pytest.mark.parametrize("penalty", [0.01, 1.0])
def test_penalised_fit_matches_scikit_learn(penalty: float) -> None:
    """scikit-learn sums the losses, so C = 1/(nλ)."""
    reference = LogisticRegression(C=1 / (60 * penalty), tol=1e-10, max_iter=5_000).fit(X.numpy(), LABELS.numpy())
    model = SoftmaxRegression.fit(X, LABELS, classes=3, penalty=penalty)
    torch.testing.assert_close(model.weight, torch.from_numpy(reference.coef_).T, atol=1e-6, rtol=0)
    torch.testing.assert_close(
        model.probabilities(X), torch.from_numpy(reference.predict_proba(X.numpy())), atol=1e-6, rtol=0
    )


def test_gradient_vanishes_at_the_maximum_likelihood_estimate() -> None:
    model = SoftmaxRegression.fit(X, LABELS, classes=3)
    residual = model.probabilities(X) - Y
    torch.testing.assert_close(X.T @ residual, torch.zeros(3, 3, dtype=torch.float64), atol=1e-9, rtol=0)
    torch.testing.assert_close(model.weight.sum(1), torch.zeros(3, dtype=torch.float64), atol=1e-9, rtol=0)
    assert float(model.loss(X, LABELS)) <= float(mean_loss(THETA))
    assert model.predict(X).equal(model.probabilities(X).argmax(-1))


def test_dense_classifier_without_hidden_layers_has_the_parameters_of_softmax_regression() -> None:
    assert count_parameters(dense_classifier(4, 3, hidden=())) == 15


def test_separable_classes_raise_value_error() -> None:
    x = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]])
    with pytest.raises(ValueError, match=r"needs penalty > 0; got penalty=0"):
        SoftmaxRegression.fit(x, torch.tensor([0, 0, 1, 1]), classes=2)
    model = SoftmaxRegression.fit(x, torch.tensor([0, 0, 1, 1]), classes=2, penalty=0.1)
    assert model.predict(x).tolist() == [0, 0, 1, 1]
    assert model.weight.dtype == torch.float32


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"must not be negative; got penalty=-1"):
        SoftmaxRegression.fit(X, LABELS, classes=3, penalty=-1.0)
    with pytest.raises(ValueError, match=r"labels must lie between 0 and 1; got 0 to"):
        SoftmaxRegression.fit(X, LABELS, classes=2)
