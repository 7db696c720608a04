"""Central differences: exact for parabolas, second order otherwise."""

import numpy as np
import pytest

from parnassus.autodiff import numerical_gradient, numerical_jacobian


def test_central_differences_are_exact_for_a_parabola() -> None:
    x = np.array([[1.0, -2.0], [0.5, 3.0]])
    np.testing.assert_allclose(numerical_gradient(lambda p: (p * p).sum(), x, step_size=0.1), 2 * x, rtol=1e-12)


def test_error_is_quadratic_in_the_step_size() -> None:
    x = np.array([0.9])
    errors = [abs(numerical_gradient(lambda p: np.exp(p).sum(), x, step_size=h)[0] - np.exp(0.9)) for h in (0.1, 0.01)]
    assert errors[0] / errors[1] == pytest.approx(100, rel=0.01)
    assert errors[1] == pytest.approx(np.exp(0.9) * 0.01**2 / 6, rel=0.01)


def test_jacobian_flattens_outputs_and_inputs() -> None:
    a = np.arange(6.0).reshape(2, 3)
    actual = numerical_jacobian(lambda p: a @ p, np.ones((3, 2)))
    np.testing.assert_allclose(actual, np.kron(a, np.eye(2)), atol=1e-8)


@pytest.mark.parametrize("step_size", [0.0, -1e-6, float("nan")])
def test_non_positive_step_size_raises_value_error(step_size: float) -> None:
    with pytest.raises(ValueError, match="step_size must be positive; got step_size="):
        numerical_gradient(lambda p: p.sum(), np.ones(2), step_size=step_size)
