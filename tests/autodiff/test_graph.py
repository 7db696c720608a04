"""Symbolic graphs: construction, differentiation and evaluation."""

import numpy as np
import pytest
import torch

from parnassus import autodiff as ad
from parnassus.autodiff import Program, Symbol, differentiate


def test_graph_is_evaluated_only_when_the_program_is_called() -> None:
    calls = []

    def counting_sin(x: np.ndarray) -> np.ndarray:
        calls.append(x)
        return np.asarray(np.sin(x))

    x = Symbol("x")
    y = ad.elementwise("counted", counting_sin, lambda _y, x: ad.cos(x))(x)
    num_calls = len(calls)  # shapes are inferred by evaluating placeholders
    program = Program([x], [y, *differentiate(y, [x])])
    assert len(calls) == num_calls
    value, derivative = program(0.4)
    np.testing.assert_allclose([float(value), float(derivative)], [np.sin(0.4), np.cos(0.4)])
    assert len(calls) == num_calls + 1  # evaluated once for value and derivative


def test_higher_derivatives_of_a_polynomial() -> None:
    x = Symbol("x")
    derivatives = [x**4]
    for _ in range(5):
        derivatives += differentiate(derivatives[-1], [x])
    for point in (-1.5, 0.0, 2.0):
        expected = [point**4, 4 * point**3, 12 * point**2, 24 * point, 24.0, 0.0]
        np.testing.assert_allclose(np.array(Program([x], derivatives)(point)), expected)


def test_mixed_derivatives_are_symmetric_and_match_torch() -> None:
    x, y = Symbol("x"), Symbol("y")
    z = ad.exp(x * y) * ad.sin(x)
    (by_x,), (by_y,) = differentiate(z, [x]), differentiate(z, [y])
    (xy,), (yx,) = differentiate(by_x, [y]), differentiate(by_y, [x])
    value_xy, value_yx = Program([x, y], [xy, yx])(0.7, -0.4)
    assert float(value_xy) == pytest.approx(float(value_yx), rel=1e-13)
    tx, ty = (torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in (0.7, -0.4))
    (derivative_x,) = torch.autograd.grad((tx * ty).exp() * tx.sin(), tx, create_graph=True)
    assert float(value_xy) == pytest.approx(float(torch.autograd.grad(derivative_x, ty)[0]), rel=1e-13)


def test_seed_gives_a_vector_jacobian_product_as_a_graph() -> None:
    x, u = Symbol("x", (3,)), Symbol("u", (2,))
    w = np.random.default_rng(0).normal(size=(3, 2))
    (product,) = differentiate(ad.tanh(x @ w), [x], u)
    point, seed = np.array([0.1, -0.5, 2.0]), np.array([1.0, -3.0])
    expected = ad.jacobian(lambda v: ad.tanh(v @ w), point).T @ seed
    np.testing.assert_allclose(Program([x, u], [product])(point, seed)[0], expected, rtol=1e-13)


def test_jvp_on_symbols_gives_a_graph() -> None:
    x, v = Symbol("x"), Symbol("v")
    value, tangent = ad.jvp(lambda x: x * ad.sin(x), x, v)
    results = Program([x, v], [value, tangent])(1.2, 2.0)
    np.testing.assert_allclose(np.array(results), [1.2 * np.sin(1.2), 2 * (np.sin(1.2) + 1.2 * np.cos(1.2))])


def test_forward_pass_stores_all_values() -> None:
    x, w = Symbol("x", (2, 3)), Symbol("w", (3,))
    z = x @ w
    y = ad.total(ad.relu(z))
    values = ad.forward_pass([y], {x: np.ones((2, 3)), w: np.array([1.0, -3.0, 4.0])})
    assert {node.name for node in values} >= {"x", "w", "relu", "sum"}
    np.testing.assert_array_equal(values[z], [2.0, 2.0])
    assert float(values[y]) == 4.0


def test_shapes_are_inferred_without_values() -> None:
    x, w = Symbol("x", (5, 3)), Symbol("w", (3, 2))
    assert (x @ w).shape == (5, 2)
    assert ad.total(x @ w, 0).shape == (2,)
    assert ad.log_sum_exp(x).shape == (5,)
    assert [derivative.shape for derivative in differentiate(ad.mean(ad.log(x @ w)), [x, w])] == [(5, 3), (3, 2)]
    assert repr(x @ w) == "@(x, w)"


def test_unused_input_has_derivative_zero() -> None:
    x, y = Symbol("x"), Symbol("y", (2,))
    np.testing.assert_array_equal(Program([x], differentiate(x * 2.0, [y]))(1.0)[0], [0.0, 0.0])


def test_invalid_values_raise_value_error() -> None:
    x, w = Symbol("x"), Symbol("w", (2,))
    with pytest.raises(ValueError, match="the graph needs values for w; its inputs are x"):
        Program([x], [x * w])
    with pytest.raises(ValueError, match="the program takes values for x, w; got 1 values"):
        Program([x, w], [x * w])(1.0)
    with pytest.raises(ValueError, match=r"w has shape \(2,\); got a value of shape \(3,\)"):
        Program([x, w], [x * w])(1.0, np.ones(3))
    with pytest.raises(ValueError, match="the graph needs a value for w; got values for x"):
        ad.forward_pass([x * w], {x: 1.0})
    with pytest.raises(ValueError, match=r"got no seed for shape \(2,\)"):
        differentiate(w * 2.0, [w])
    with pytest.raises(ValueError, match=r"the seed must have the shape of the output; got \(\) for \(2,\)"):
        differentiate(w * 2.0, [w], x)
    with pytest.raises(ValueError, match="a graph needs symbols or arrays; got a Variable"):
        x + ad.Variable(1.0)
