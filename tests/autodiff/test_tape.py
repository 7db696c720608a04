"""The tape: records, sweeps and sweeps of sweeps, against closed forms and torch."""

import numpy as np
import pytest
import torch

from parnassus import autodiff as ad
from parnassus.autodiff import Variable, derivatives, pull_back

A = np.random.default_rng(0).normal(size=(4, 4))


def quadratic(x: Variable) -> Variable:
    return x @ A @ x / 2


def test_the_gradient_of_a_quadratic_form() -> None:
    x = np.random.default_rng(1).normal(size=4)
    value, (slope,) = ad.value_and_gradients(quadratic, x)
    assert float(value) == pytest.approx(x @ A @ x / 2)
    np.testing.assert_allclose(slope, (A + A.T) @ x / 2)
    np.testing.assert_allclose(ad.hessian(quadratic, x), (A + A.T) / 2, atol=1e-15)
    np.testing.assert_allclose(ad.hessian_product(quadratic, x, x), (A + A.T) @ x / 2)


def test_the_jacobian_of_a_linear_map_is_its_matrix() -> None:
    np.testing.assert_array_equal(ad.jacobian(lambda x: A @ x, np.ones(4)), A)


def test_a_variable_used_many_times_collects_from_every_use() -> None:
    x = Variable(3.0)
    y = x
    for _ in range(4):
        y = y * x  # x⁵
    assert float(pull_back(y, [x])[0]) == 5 * 3.0**4


def test_deep_records_need_no_deep_stack() -> None:
    x = Variable(1.0)
    y = x
    for _ in range(20_000):
        y = y + 1e-4
    assert float(pull_back(y, [x])[0]) == 1.0


def test_what_the_output_does_not_rest_on_has_gradient_zero() -> None:
    x, other = Variable(np.ones(3)), Variable(np.ones((2, 2)))
    y = ad.total(x * x)
    np.testing.assert_array_equal(pull_back(y, [other])[0], np.zeros((2, 2)))
    np.testing.assert_array_equal(derivatives(y, [other])[0].value, np.zeros((2, 2)))


def test_a_gradient_can_stop_at_any_node() -> None:
    """The output itself has gradient 1, and a node in the middle counts as a variable."""
    x = Variable(0.3)
    middle = ad.sin(x)
    y = ad.exp(middle)
    of_y, of_middle, of_x = pull_back(y, [y, middle, x])
    assert float(of_y) == 1.0
    assert float(of_middle) == pytest.approx(np.exp(np.sin(0.3)))
    assert float(of_x) == pytest.approx(np.exp(np.sin(0.3)) * np.cos(0.3))


def test_sweeping_does_not_change_the_record() -> None:
    x = Variable(np.array([0.5, -2.0]))
    y = ad.total(ad.gelu(x) * x)
    first, second = (pull_back(y, [x])[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_rules_of_locally_constant_operations_pass_nothing() -> None:
    x = Variable(np.array([-1.0, 2.0]))
    (slope,) = pull_back(ad.total(ad.relu(x) * 0.0 + ad.detached(x)), [x])
    np.testing.assert_array_equal(slope, [0.0, 0.0])


def test_gradients_of_gradients_penalise_a_network_as_in_torch() -> None:
    """∇_w ‖∇ₓ f(x, w)‖², which mixes two sweeps over different inputs."""
    source = np.random.default_rng(2)
    x, w = Variable(source.normal(size=(5, 3))), Variable(source.normal(size=(3, 2)))
    (slope,) = derivatives(ad.total(ad.tanh(x @ w)), [x])
    (found,) = pull_back(ad.total(slope * slope), [w])
    tx, tw = (torch.from_numpy(each.value).requires_grad_() for each in (x, w))
    (torch_slope,) = torch.autograd.grad((tx @ tw).tanh().sum(), tx, create_graph=True)
    np.testing.assert_allclose(found, torch.autograd.grad(torch_slope.square().sum(), tw)[0], rtol=1e-12)


def test_memory_counts_each_value_once() -> None:
    x = Variable(np.ones((4, 8)))
    y = x * x + x
    assert ad.remembered_bytes(y) == 3 * 4 * 8 * 8


def test_whole_numbers_become_floats() -> None:
    x = Variable(3)
    assert x.value.dtype == np.dtype(np.float64)
    assert repr(x) == "Variable(array(3.))"


def test_what_cannot_be_swept_gets_a_sentence() -> None:
    x = Variable(np.ones(3))
    with pytest.raises(ValueError, match=r"an output of shape \(3,\) has no gradient, only a Jacobian; give a seed"):
        pull_back(x * 2.0, [x])
    with pytest.raises(ValueError, match=r"the seed must have the shape of the output; got \(2,\) for \(3,\)"):
        pull_back(x * 2.0, [x], np.ones(2))
    with pytest.raises(ValueError, match="the tape computes with numbers, and a Symbol has none yet"):
        x + ad.Symbol("s", (3,))
