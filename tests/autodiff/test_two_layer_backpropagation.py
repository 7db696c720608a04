"""Backpropagation by hand against central differences of the objective."""

import numpy as np
import pytest

from parnassus.autodiff import numerical_gradient, propagate_backward, propagate_forward

RNG = np.random.default_rng(0)
X, W1, W2 = RNG.normal(size=(6, 3)), RNG.normal(size=(4, 3)), RNG.normal(size=(2, 4))


def objective(w1: np.ndarray, w2: np.ndarray, penalty: float) -> float:
    outputs = np.tanh(X @ w1.T) @ w2.T
    return float((outputs**2).sum() / 2 + penalty / 2 * ((w1**2).sum() + (w2**2).sum()))


@pytest.mark.parametrize("penalty", [0.0, 0.7])
def test_gradients_match_finite_differences(penalty: float) -> None:
    values = propagate_forward(X, W1, W2, np.tanh)
    first, second = propagate_backward(
        values, values.o, W1, W2, phi_derivative=lambda z: 1 - np.tanh(z) ** 2, penalty=penalty
    )
    np.testing.assert_allclose(first, numerical_gradient(lambda w: objective(w, W2, penalty), W1), atol=1e-7)
    np.testing.assert_allclose(second, numerical_gradient(lambda w: objective(W1, w, penalty), W2), atol=1e-7)


def test_gradient_of_a_batch_is_the_sum_over_its_rows() -> None:
    def gradients(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = propagate_forward(x, W1, W2, np.tanh)
        return propagate_backward(values, values.o, W1, W2, phi_derivative=lambda z: 1 - np.tanh(z) ** 2)

    for full, per_row in zip(gradients(X), zip(*(gradients(row[None]) for row in X), strict=True), strict=True):
        np.testing.assert_allclose(full, np.sum(per_row, 0), rtol=1e-12)


def test_number_of_stored_values() -> None:
    assert propagate_forward(X, W1, W2, np.tanh).size == 6 * (3 + 4 + 4 + 2)


def test_negative_penalty_raises_value_error() -> None:
    values = propagate_forward(X, W1, W2, np.tanh)
    with pytest.raises(ValueError, match="penalty must not be negative; got penalty=-1"):
        propagate_backward(values, values.o, W1, W2, phi_derivative=np.cos, penalty=-1.0)
