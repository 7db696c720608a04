"""Dual numbers: directional derivatives, also nested."""

import numpy as np
import pytest

from parnassus import autodiff as ad
from parnassus.autodiff import Dual, Variable, gradients, jvp


def test_dual_number_follows_the_product_rule() -> None:
    value, tangent = jvp(lambda x: x * x * x, 2.0, 1.0)
    assert (float(value), float(tangent)) == (8.0, 12.0)


def test_constant_function_has_tangent_zero() -> None:
    assert jvp(lambda _x: 3.0, 1.0, 1.0) == (3.0, 0.0)
    value, tangent = jvp(lambda x: ad.relu(x) * 0.0 + 1.0, np.ones(2), np.ones(2))
    np.testing.assert_array_equal([value, tangent], [[1.0, 1.0], [0.0, 0.0]])


def test_piecewise_constant_function_has_tangent_zero() -> None:
    from parnassus.autodiff.operations import sign

    _, tangent = jvp(sign, np.array([2.0, -1.0]), np.ones(2))
    np.testing.assert_array_equal(tangent, [0.0, 0.0])


def test_forward_and_reverse_mode_give_the_same_jacobian() -> None:
    w = np.random.default_rng(0).normal(size=(3, 5))
    x = np.array([0.2, -1.0, 0.7])
    columns = ad.forward_mode_jacobian(lambda v: ad.softmax(v @ w), x)
    np.testing.assert_allclose(columns, ad.jacobian(lambda v: ad.softmax(v @ w), x), rtol=1e-12)


def test_nested_calls_keep_their_tangents_separate() -> None:
    """d/dx [x · d/dy (x + y)] at x = 1 is 1; one shared ε would give 2."""

    def outer(x: Dual) -> Dual:
        return x * jvp(lambda y: x + y, 1.0, 1.0)[1]

    assert float(jvp(outer, 1.0, 1.0)[1]) == 1.0


def test_forward_over_forward_is_the_second_derivative() -> None:
    def derivative(x: Dual) -> Dual:
        return jvp(ad.sin, x, np.array(1.0))[1]  # type: ignore[return-value]

    assert float(jvp(derivative, np.array(0.8), np.array(1.0))[1]) == pytest.approx(-np.sin(0.8))


def test_reverse_over_forward_is_a_hessian_vector_product() -> None:
    x, v = Variable(np.array([0.3, -0.6])), np.array([1.0, 2.0])
    _, tangent = jvp(lambda x: ad.total(ad.exp(x) * ad.sin(x)), x, Variable(v))
    diagonal = 2 * np.exp(x.value) * np.cos(x.value)
    np.testing.assert_allclose(gradients(tangent, [x])[0], diagonal * v, rtol=1e-13)


def test_mismatched_direction_shape_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"direction must have the shape of the point; got \(2,\) for \(3,\)"):
        jvp(ad.sin, np.ones(3), np.ones(2))


def test_repr() -> None:
    assert repr(Dual(1.0, 2.0, 2)) == "Dual(1.0 + ε 2.0)"
