"""Operations against finite differences and torch: values, both modes, higher derivatives."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from autodiff.cases import CASES, Case
from parnassus import autodiff as ad
from parnassus.autodiff.derivative_rules import Array
from parnassus.autodiff.tape import Variable, differentiable_gradients, gradients

parametrize_cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def scalar(case: Case, weights: Array) -> Callable[..., Variable]:
    """A nonlinear scalar function of the result: Σ w y + ½ Σ w y²."""

    def function(*points: Variable) -> Variable:
        y = case.function(*points)
        result: Variable = ad.total(y * weights) + ad.total(y * y * weights) / 2
        return result

    return function


def torch_scalar(case: Case, weights: Array) -> Callable[..., Tensor]:
    def function(*points: Tensor) -> Tensor:
        y = case.torch_function(*points)
        result: Tensor = (y * torch.from_numpy(weights)).sum() + (y * y * torch.from_numpy(weights)).sum() / 2
        return result

    return function


def random_weights(case: Case, points: list[Array]) -> Array:
    return np.asarray(np.random.default_rng(1).normal(size=np.shape(case.function(*points))))


@parametrize_cases
def test_values_match_torch(case: Case) -> None:
    points = case.arguments()
    np.testing.assert_allclose(case.function(*points), case.torch_function(*map(torch.from_numpy, points)), rtol=1e-13)


@parametrize_cases
def test_gradients_match_torch_and_finite_differences(case: Case) -> None:
    points = case.arguments()
    weights = random_weights(case, points)
    function = scalar(case, weights)
    _, derivatives = ad.value_and_gradients(function, *points)
    tensors = [torch.from_numpy(point).requires_grad_() for point in points]
    expected_gradients = torch.autograd.grad(torch_scalar(case, weights)(*tensors), tensors)
    for index, (derivative, expected) in enumerate(zip(derivatives, expected_gradients, strict=True)):
        assert derivative.shape == points[index].shape
        np.testing.assert_allclose(derivative, expected, rtol=1e-12, atol=1e-13)

        def partial_function(x: Array, index: int = index) -> Array:
            return function(*[Variable(x if other == index else points[other]) for other in range(len(points))]).value

        np.testing.assert_allclose(
            derivative, ad.numerical_gradient(partial_function, points[index]), rtol=1e-6, atol=1e-7
        )


@parametrize_cases
def test_jvp_is_the_transpose_of_the_vjp(case: Case) -> None:
    """⟨u, J v⟩ = ⟨Jᵀ u, v⟩ for each argument, and J v matches torch."""
    points = case.arguments()
    rng = np.random.default_rng(2)
    for index, point in enumerate(points):

        def function(x: object, index: int = index) -> Variable:
            arguments = [x if other == index else points[other] for other in range(len(points))]
            result: Variable = case.function(*arguments)
            return result

        def torch_function(x: Tensor, index: int = index) -> Tensor:
            arguments = [x if other == index else torch.from_numpy(points[other]) for other in range(len(points))]
            result: Tensor = case.torch_function(*arguments)
            return result

        v = np.asarray(rng.normal(size=point.shape))
        value, tangent = ad.jvp(function, point, v)
        u = np.asarray(rng.normal(size=np.shape(value)))
        x = Variable(point)
        (gradient,) = gradients(function(x), [x], u)
        np.testing.assert_allclose(np.sum(u * tangent), np.sum(gradient * v), rtol=1e-11, atol=1e-12)
        _, expected = torch.autograd.functional.jvp(torch_function, torch.from_numpy(point), torch.from_numpy(v))
        np.testing.assert_allclose(tangent, expected, rtol=1e-11, atol=1e-13)


@parametrize_cases
def test_second_and_third_derivatives_match_torch(case: Case) -> None:
    """Gradients of gradients, each contracted with a fixed direction."""
    points = case.arguments()
    weights = random_weights(case, points)
    directions = [np.asarray(np.random.default_rng(3).normal(size=point.shape)) for point in points]
    variables = [Variable(point) for point in points]
    tensors = [torch.from_numpy(point).requires_grad_() for point in points]
    value, torch_value = scalar(case, weights)(*variables), torch_scalar(case, weights)(*tensors)
    for _ in range(2):
        derivatives = differentiable_gradients(value, variables)
        torch_derivatives = torch.autograd.grad(torch_value, tensors, create_graph=True, materialize_grads=True)
        value = sum(
            (ad.total(derivative * v) for derivative, v in zip(derivatives[1:], directions[1:], strict=True)),
            ad.total(derivatives[0] * directions[0]),
        )
        torch_value = torch.stack(
            [
                (derivative * torch.from_numpy(v)).sum()
                for derivative, v in zip(torch_derivatives, directions, strict=True)
            ]
        ).sum()
        second_derivatives = gradients(value, variables)
        if not torch_value.requires_grad:  # the derivative is constant
            np.testing.assert_allclose(
                np.concatenate([derivative.ravel() for derivative in second_derivatives]), 0, atol=1e-12
            )
            return
        expected = torch.autograd.grad(torch_value, tensors, retain_graph=True, materialize_grads=True)
        for derivative, torch_derivative in zip(second_derivatives, expected, strict=True):
            np.testing.assert_allclose(derivative, torch_derivative.numpy(force=True), rtol=1e-9, atol=1e-10)


@parametrize_cases
def test_graph_and_tape_give_the_same_values(case: Case) -> None:
    points = case.arguments()
    function = scalar(case, random_weights(case, points))
    symbols = [ad.Symbol(f"x{index}", point.shape) for index, point in enumerate(points)]
    y = function(*symbols)  # the same function, traced on symbols
    assert isinstance(y, ad.Symbol)
    numbers = ad.Program(symbols, [y, *ad.differentiate(y, symbols)])(*points)
    value, derivatives = ad.value_and_gradients(function, *points)
    for number, expected in zip(numbers, [value, *derivatives], strict=True):
        np.testing.assert_allclose(number, expected, rtol=1e-14, atol=1e-15)


def test_derivatives_at_kinks_match_torch() -> None:
    zero, tensor = np.zeros(1), torch.zeros(1, dtype=torch.float64, requires_grad=True)
    for function, torch_function in (
        (ad.relu, torch.relu),
        (ad.absolute, torch.abs),
        (ad.leaky_relu, torch.nn.LeakyReLU()),
    ):
        _, (derivative,) = ad.value_and_gradients(lambda x, f=function: ad.total(f(x)), zero)
        (expected,) = torch.autograd.grad(torch_function(tensor).sum(), tensor)
        np.testing.assert_array_equal(derivative, expected)
    _, derivatives = ad.value_and_gradients(lambda a, b: ad.total(ad.maximum(a, b)), zero, zero)
    np.testing.assert_array_equal(derivatives, [[0.5], [0.5]])


def test_integer_powers_have_all_derivatives_at_zero() -> None:
    """The rule n xⁿ⁻¹ would give 0 · ∞ once repeated differentiation has reduced the exponent to 0."""
    x = Variable(0.0)
    derivative = x**2
    for expected in (0.0, 2.0, 0.0, 0.0):
        (derivative,) = differentiable_gradients(derivative, [x])
        assert float(derivative.value) == expected


@pytest.mark.parametrize("z", [1e4, -1e4, 700.0])
def test_large_numbers_do_not_overflow(z: float) -> None:
    with np.errstate(over="raise", invalid="raise"):
        x = np.array([[z, 0.0, -z]])
        loss, (derivative,) = ad.value_and_gradients(lambda logits: ad.cross_entropy(logits, np.array([1])), x)
        assert float(loss) == pytest.approx(abs(z))
        np.testing.assert_allclose(derivative, ad.softmax(x) - [[0.0, 1.0, 0.0]])
        assert float(ad.sigmoid(np.array(z))) == pytest.approx(float(z > 0))


def test_float32_is_preserved() -> None:
    w = np.ones((3, 2), np.float32)
    x = np.ones((5, 3), np.float32)
    labels = np.zeros(5, np.int64)
    loss, (derivative,) = ad.value_and_gradients(
        lambda w: ad.cross_entropy(ad.gelu(ad.sigmoid(x @ w) * 2.0), labels), w
    )
    assert [loss.dtype, derivative.dtype] == [np.dtype(np.float32)] * 2


def test_invalid_shapes_raise_value_error() -> None:
    x = Variable(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"must agree; got shapes \(2, 3\) and \(2, 3\)"):
        x @ x
    with pytest.raises(ValueError, match=r"got shapes \(\) and \(3,\)"):
        ad.matmul(Variable(1.0), np.zeros(3))
    with pytest.raises(ValueError, match="axis must lie in -2 … 1; got axis=2"):
        ad.total(x, 2)
    with pytest.raises(ValueError, match="labels must be 2 integers from 0 to 2; got shape"):
        ad.cross_entropy(x, np.array([0, 3]))


@pytest.mark.parametrize("offset", [0.0, 1e15, -1e15])
def test_cross_entropy_does_not_depend_on_an_offset_of_the_logits(offset: float) -> None:
    z = np.array([[0.0, 1.0, 2.0], [2.0, 0.0, 0.0]])
    labels = np.array([1, 2])
    expected = np.log(np.exp(z).sum(1)) - z[[0, 1], labels]
    assert ad.cross_entropy(z + offset, labels) == pytest.approx(expected.mean(), rel=1e-14)
    np.testing.assert_allclose(ad.softmax(z + offset), np.exp(z) / np.exp(z).sum(1, keepdims=True), rtol=1e-14)
    _, (gradient,) = ad.value_and_gradients(lambda x: ad.cross_entropy(x, labels), z + offset)
    one_hot = np.eye(3)[labels]
    np.testing.assert_allclose(gradient, (np.exp(z) / np.exp(z).sum(1, keepdims=True) - one_hot) / 2, rtol=1e-13)
