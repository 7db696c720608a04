"""The tape: gradients and higher derivatives against closed forms and torch."""

import numpy as np
import pytest
import torch

from parnassus import autodiff as ad
from parnassus.autodiff import Variable, differentiable_gradients, gradients

A = np.random.default_rng(0).normal(size=(4, 4))


def quadratic(x: Variable) -> Variable:
    return x @ A @ x / 2


def test_gradient_of_a_quadratic_form() -> None:
    x = np.random.default_rng(1).normal(size=4)
    value, (derivative,) = ad.value_and_gradients(quadratic, x)
    assert float(value) == pytest.approx(x @ A @ x / 2)
    np.testing.assert_allclose(derivative, (A + A.T) @ x / 2)
    np.testing.assert_allclose(ad.hessian(quadratic, x), (A + A.T) / 2, atol=1e-15)
    np.testing.assert_allclose(ad.hessian_vector_product(quadratic, x, x), (A + A.T) @ x / 2)


def test_jacobian_of_a_linear_map_is_its_matrix() -> None:
    np.testing.assert_array_equal(ad.jacobian(lambda x: A @ x, np.ones(4)), A)


def test_gradient_of_a_reused_variable_sums_over_its_uses() -> None:
    x = Variable(3.0)
    y = x
    for _ in range(4):
        y = y * x  # x⁵
    assert float(gradients(y, [x])[0]) == 5 * 3.0**4


def test_deep_graphs_do_not_exceed_the_recursion_limit() -> None:
    x = Variable(1.0)
    y = x
    for _ in range(20_000):
        y = y + 1e-4
    assert float(gradients(y, [x])[0]) == 1.0


def test_unused_input_has_gradient_zero() -> None:
    x, other = Variable(np.ones(3)), Variable(np.ones((2, 2)))
    y = ad.total(x * x)
    np.testing.assert_array_equal(gradients(y, [other])[0], np.zeros((2, 2)))
    np.testing.assert_array_equal(differentiable_gradients(y, [other])[0].value, np.zeros((2, 2)))


def test_gradients_with_respect_to_intermediate_nodes() -> None:
    """The output has gradient 1; an intermediate node is treated like a variable."""
    x = Variable(0.3)
    middle = ad.sin(x)
    y = ad.exp(middle)
    gradient_y, gradient_middle, gradient_x = gradients(y, [y, middle, x])
    assert float(gradient_y) == 1.0
    assert float(gradient_middle) == pytest.approx(np.exp(np.sin(0.3)))
    assert float(gradient_x) == pytest.approx(np.exp(np.sin(0.3)) * np.cos(0.3))


def test_gradients_do_not_accumulate() -> None:
    x = Variable(np.array([0.5, -2.0]))
    y = ad.total(ad.gelu(x) * x)
    first, second = (gradients(y, [x])[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_locally_constant_operations_have_gradient_zero() -> None:
    x = Variable(np.array([-1.0, 2.0]))
    (derivative,) = gradients(ad.total(ad.relu(x) * 0.0 + ad.detach(x)), [x])
    np.testing.assert_array_equal(derivative, [0.0, 0.0])


def test_gradient_of_a_gradient_penalty_matches_torch() -> None:
    """∇_w ‖∇ₓ f(x, w)‖², by two backward passes with respect to different inputs."""
    rng = np.random.default_rng(2)
    x, w = Variable(rng.normal(size=(5, 3))), Variable(rng.normal(size=(3, 2)))
    (derivative,) = differentiable_gradients(ad.total(ad.tanh(x @ w)), [x])
    (actual,) = gradients(ad.total(derivative * derivative), [w])
    tx, tw = (torch.from_numpy(each.value).requires_grad_() for each in (x, w))
    (torch_derivative,) = torch.autograd.grad((tx @ tw).tanh().sum(), tx, create_graph=True)
    np.testing.assert_allclose(actual, torch.autograd.grad(torch_derivative.square().sum(), tw)[0], rtol=1e-12)


def test_tape_bytes_counts_each_value_once() -> None:
    x = Variable(np.ones((4, 8)))
    y = x * x + x
    assert ad.tape_bytes(y) == 3 * 4 * 8 * 8


def test_integers_become_floats() -> None:
    x = Variable(3)
    assert x.value.dtype == np.dtype(np.float64)
    assert repr(x) == "Variable(array(3.))"


def test_invalid_seeds_raise_value_error() -> None:
    x = Variable(np.ones(3))
    with pytest.raises(
        ValueError, match=r"a non-scalar output needs a seed of its shape, for Jᵀ seed; got no seed for shape \(3,\)"
    ):
        gradients(x * 2.0, [x])
    with pytest.raises(ValueError, match=r"the seed must have the shape of the output; got \(2,\) for \(3,\)"):
        gradients(x * 2.0, [x], np.ones(2))
    with pytest.raises(ValueError, match="the tape needs arrays or variables; got a Symbol"):
        x + ad.Symbol("s", (3,))
