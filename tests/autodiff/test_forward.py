"""Dual numbers: one run, one direction; and directions inside directions."""

import numpy as np
import pytest

from parnassus import autodiff as ad
from parnassus.autodiff import Dual, Variable, pull_back, push_forward


def test_a_dual_number_follows_the_product_rule() -> None:
    value, change = push_forward(lambda x: x * x * x, 2.0, 1.0)
    assert (float(value), float(change)) == (8.0, 12.0)


def test_what_does_not_depend_on_the_point_does_not_change() -> None:
    assert push_forward(lambda _x: 3.0, 1.0, 1.0) == (3.0, 0.0)
    value, change = push_forward(lambda x: ad.relu(x) * 0.0 + 1.0, np.ones(2), np.ones(2))
    np.testing.assert_array_equal([value, change], [[1.0, 1.0], [0.0, 0.0]])


def test_a_constant_piece_has_no_tangent() -> None:
    from parnassus.autodiff.operations import sign

    _, change = push_forward(sign, np.array([2.0, -1.0]), np.ones(2))
    np.testing.assert_array_equal(change, [0.0, 0.0])


def test_the_jacobian_by_columns_is_the_one_by_rows() -> None:
    w = np.random.default_rng(0).normal(size=(3, 5))
    x = np.array([0.2, -1.0, 0.7])
    columns = ad.jacobian_by_columns(lambda v: ad.softmax(v @ w), x)
    np.testing.assert_allclose(columns, ad.jacobian(lambda v: ad.softmax(v @ w), x), rtol=1e-12)


def test_calls_inside_calls_do_not_mix_their_directions() -> None:
    """d/dx [x · d/dy (x + y)] at x = 1 is 1; with one ε for both it would come out as 2."""

    def outer(x: Dual) -> Dual:
        return x * push_forward(lambda y: x + y, 1.0, 1.0)[1]

    assert float(push_forward(outer, 1.0, 1.0)[1]) == 1.0


def test_forward_over_forward_is_the_second_derivative() -> None:
    def slope(x: Dual) -> Dual:
        return push_forward(ad.sin, x, np.array(1.0))[1]  # type: ignore[return-value]

    assert float(push_forward(slope, np.array(0.8), np.array(1.0))[1]) == pytest.approx(-np.sin(0.8))


def test_backward_over_forward_is_a_hessian_product() -> None:
    x, v = Variable(np.array([0.3, -0.6])), np.array([1.0, 2.0])
    _, change = push_forward(lambda x: ad.total(ad.exp(x) * ad.sin(x)), x, Variable(v))
    diagonal = 2 * np.exp(x.value) * np.cos(x.value)
    np.testing.assert_allclose(pull_back(change, [x])[0], diagonal * v, rtol=1e-13)


def test_a_direction_of_another_shape_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"a direction has the shape of its point; got \(2,\) for \(3,\)"):
        push_forward(ad.sin, np.ones(3), np.ones(2))


def test_it_shows_both_parts() -> None:
    assert repr(Dual(1.0, 2.0, 2)) == "Dual(1.0 + ε 2.0)"
