"""Claims about the chain rule, in one variable and in many (book sec. 2.1, Zhao sec. 2)."""

from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch.autograd.functional import jacobian as torch_jacobian

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum
from parnassus.autodiff.activations_and_losses import gelu, sigmoid, softmax
from parnassus.autodiff.derivative_rules import Array, Operation
from parnassus.autodiff.finite_differences import numerical_gradient, numerical_jacobian
from parnassus.autodiff.forward_mode import forward_mode_jacobian, jvp
from parnassus.autodiff.operations import Arithmetic, cos, erf, exp, sin, tanh, total
from parnassus.autodiff.tape import Variable, detach, gradients, jacobian, value_and_gradients

Node = TypeVar("Node", bound=Arithmetic)
SMOOTH: tuple[Operation, ...] = (sin, cos, tanh, exp, erf, sigmoid)


def sample_weight(outputs: int, inputs: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=(outputs, inputs))


def sum_of_composition(f: Operation, g: Operation, x: Array) -> Array:
    return np.asarray(np.asarray(f(g(x))).sum())


@claim("B2.1-1")
def the_derivative_of_a_composition_is_a_product() -> Evidence:
    """dz/dx = f′(g(x)) g′(x) for every pair of six smooth functions, by tape and by differences (book eq. 2.1)."""
    points = np.random.default_rng(0).uniform(-1.5, 1.5, 10)
    tape, product, differences = [], [], []
    for f in SMOOTH:
        for g in SMOOTH:
            (inner,) = value_and_gradients(lambda x, g=g: total(g(x)), points)[1]
            (outer,) = value_and_gradients(lambda y, f=f: total(f(y)), g(points))[1]
            tape.append(value_and_gradients(lambda x, f=f, g=g: total(f(g(x))), points)[1][0])
            product.append(outer * inner)
            differences.append(numerical_gradient(partial(sum_of_composition, f, g), points))
    return all_of(
        tape=close(np.stack(tape), np.stack(product), rtol=1e-12, atol=1e-15),
        differences=close(np.stack(differences), np.stack(product), rtol=1e-6, atol=1e-8),
    )


@claim("B2.1-2", "Z2.5")
def gradients_are_multiplied_by_the_transposed_jacobian() -> Evidence:
    """∇ₓz = Jᵀ ∇_y z for z = f(g(x)): by tape, by torch's Jacobian and by central differences (book eq. 2.2)."""
    a, b = sample_weight(5, 3, 0), sample_weight(1, 5, 1)
    x = np.random.default_rng(2).normal(size=3)

    def g(x: Variable) -> Variable:
        return tanh(x @ a.T)

    def f(y: Variable) -> Variable:
        return total(gelu(y @ b.T))

    (composed,) = value_and_gradients(lambda x: f(g(x)), x)[1]
    (outer,) = value_and_gradients(f, g(Variable(x)).value)[1]
    by_torch = torch_jacobian(lambda x: (torch.from_numpy(a) @ x).tanh(), torch.from_numpy(x)).numpy()
    by_sum = np.array([sum(outer[j] * by_torch[j, i] for j in range(5)) for i in range(3)])
    return all_of(
        tape=close(composed, jacobian(g, x).T @ outer, rtol=1e-13),
        sum_over_intermediates=close(composed, by_sum, rtol=1e-13),
        torch_jacobian=close(jacobian(g, x), by_torch, rtol=1e-13),
        differences=close(numerical_gradient(lambda x: f(g(Variable(x))).value, x), composed, rtol=1e-7),
    )


@claim("B2.1-2")
def reverse_mode_is_the_adjoint_of_forward_mode() -> Evidence:
    """⟨u, J v⟩ = ⟨Jᵀ u, v⟩; the tape (by rows) and dual numbers (by columns) give one Jacobian (book eq. 2.2)."""
    a, b = sample_weight(6, 4, 3), sample_weight(3, 6, 4)
    source = np.random.default_rng(5)
    left, right = [], []

    def network(x: Node) -> Node:
        return softmax(sin(x @ a.T) @ b.T)

    for _ in range(20):
        x, v, u = source.normal(size=4), source.normal(size=4), source.normal(size=3)
        variable = Variable(x)
        (vjp,) = gradients(network(variable), [variable], u)
        left.append(u @ jvp(network, x, v)[1])
        right.append(vjp @ v)
    return all_of(
        adjoint=close(np.array(left), np.array(right), rtol=1e-11, atol=1e-14),
        rows_and_columns=close(jacobian(network, x), forward_mode_jacobian(network, x), rtol=1e-11, atol=1e-15),
        differences=close(
            jacobian(network, x), numerical_jacobian(lambda x: network(Variable(x)).value, x), rtol=1e-6, atol=1e-9
        ),
    )


@erratum("B2.1-2", printed="∇ₓz = [∇ₓg]ᵀ ∇_y f, one ∇ for all three", right="∇ₓz = Jᵀ ∇_y z, where ∇ is J transposed")
def the_printed_chain_rule_mixes_two_layouts() -> Correction:
    """∇ₓg denotes J and ∇ₓz a transposed Jacobian in one line; with either layout alone it fails (book eq. 2.2)."""
    a, b = sample_weight(4, 4, 6), sample_weight(4, 4, 7)  # square, so that all shapes fit
    x = np.random.default_rng(8).normal(size=4)

    def g(x: Variable) -> Variable:
        return tanh(x @ a.T)

    def f(y: Variable) -> Variable:
        return sin(y @ b.T)

    inner, outer, composed = jacobian(g, x), jacobian(f, g(Variable(x)).value), jacobian(lambda x: f(g(x)), x)
    return Correction(
        printed=close(composed.T, inner.T.T @ outer.T, rtol=1e-6),
        corrected=all_of(
            gradient_layout=close(composed.T, inner.T @ outer.T, rtol=1e-12),
            jacobian_layout=close(composed, outer @ inner, rtol=1e-12),
        ),
    )


@claim("Z2.1")
def the_gradient_of_2xtx_is_4x() -> Evidence:
    """The gradient of y = 2xᵀx is 4x; it does not accumulate between backward passes as in torch (Zhao sec. 2)."""
    x = Variable(np.arange(4.0))
    y = 2 * (x @ x)
    first, second = (gradients(y, [x])[0] for _ in range(2))
    tensor = torch.arange(4.0, dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        (2 * tensor.dot(tensor)).backward()
    assert tensor.grad is not None
    return all_of(
        value=close(y.value, 28.0),
        gradient=close(first, 4 * x.value),
        repeated=close(second, first),
        torch_accumulates=close(tensor.grad, 8 * x.value),
    )


@claim("Z2.1")
def the_tape_records_executed_operations() -> Evidence:
    """A detached factor is a constant; with loops and branches the derivative of f(a) = k·a is f(a)/a (Zhao sec. 2)."""
    x = Variable(np.array([0.5, -1.0, 3.0]))
    square = x * x
    (detached,) = gradients(total(x * detach(square)), [x])
    (attached,) = gradients(total(x * square), [x])

    def until_large(a: Variable) -> Variable:
        b = a * 2.0
        while abs(float(b.value)) < 1_000:
            b = b * 2.0
        return b if float(b.value) > 0 else b * 100.0

    starts = np.array([0.37, -1.9, 51.0, -700.0])
    runs = [value_and_gradients(until_large, start) for start in starts]
    return all_of(
        detached=close(detached, x.value**2),
        attached=close(attached, 3 * x.value**2, rtol=1e-14),
        loops=close(
            np.array([float(gradient[0]) for _, gradient in runs]),
            np.array([float(value) for value, _ in runs]) / starts,
            rtol=1e-14,
        ),
    )
