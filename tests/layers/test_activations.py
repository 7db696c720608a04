"""Activations against torch and closed forms, derivatives against finite differences."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from parnassus.layers import activations as act

X = torch.linspace(-30, 30, 6_001, dtype=torch.float64)
REFERENCES: list[tuple[act.Activation, Callable[[Tensor], Tensor]]] = [
    (act.identity, lambda x: x),
    (act.heaviside, lambda x: torch.heaviside(x, torch.zeros_like(x))),
    (act.relu, functional.relu),
    (act.leaky_relu, functional.leaky_relu),
    (act.tanh, lambda x: x.sinh() / x.cosh()),
    (act.sigmoid, lambda x: x.exp() / (1 + x.exp())),
    (act.gelu, functional.gelu),
    (act.gelu_tanh, lambda x: functional.gelu(x, approximate="tanh")),
    (act.elu, functional.elu),
]
DERIVATIVES = [
    (act.identity, act.identity_derivative),
    (act.relu, act.relu_derivative),
    (act.leaky_relu, act.leaky_relu_derivative),
    (act.tanh, act.tanh_derivative),
    (act.sigmoid, act.sigmoid_derivative),
    (act.gelu, act.gelu_derivative),
    (act.gelu_tanh, act.gelu_tanh_derivative),
    (act.elu, act.elu_derivative),
]


@pytest.mark.parametrize(("activation", "reference"), REFERENCES)
def test_activations_match_the_reference(activation: act.Activation, reference: Callable[[Tensor], Tensor]) -> None:
    torch.testing.assert_close(activation(X), reference(X), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("function", "derivative"), DERIVATIVES)
def test_derivatives_match_finite_differences(function: act.Activation, derivative: act.Activation) -> None:
    x, h = X[X.abs() > 0.001], 1e-5  # away from the kink at 0
    difference_quotient = (function(x + h) - function(x - h)) / (2 * h)
    torch.testing.assert_close(derivative(x), difference_quotient, rtol=0, atol=1e-8)


@pytest.mark.parametrize("function", [pair[0] for pair in REFERENCES] + [act.binary_sign])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)])
def test_shape_and_dtype_are_preserved(function: act.Activation, shape: tuple[int, ...]) -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        out = function(torch.randn(shape, dtype=torch.float64).to(dtype))
        assert out.shape == shape
        assert out.dtype == dtype


def test_heaviside_and_binary_sign_differ_only_for_non_positive_input() -> None:
    x = torch.tensor([-3.0, -0.0, 0.0, 1e-30, 5.0])
    assert act.heaviside(x).tolist() == [0, 0, 0, 1, 1]
    assert act.binary_sign(x).tolist() == [-1, -1, -1, 1, 1]


def test_gelu_is_accurate_for_large_negative_input() -> None:
    """GELU is x Φ(x), and Φ(−10) = 7.6e−24, which 1 + erf rounds to 0."""
    x = torch.tensor(-10.0, dtype=torch.float64)
    torch.testing.assert_close(act.gelu(x), torch.tensor(-7.61985302416052e-23, dtype=torch.float64), rtol=1e-9, atol=0)


def test_leaky_relu_uses_the_given_slope() -> None:
    assert float(act.leaky_relu(torch.tensor(-2.0), 0.25)) == -0.5
    assert float(act.leaky_relu_derivative(torch.tensor(-2.0), 0.25)) == 0.25


def test_elu_gradients_are_finite_where_the_other_branch_overflows() -> None:
    x = torch.tensor([-1_000.0, 1_000.0], requires_grad=True)
    act.elu(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 1]
