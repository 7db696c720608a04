"""Claims about tape-based and graph-based automatic differentiation (book sec. 2.1)."""

from collections.abc import Callable, Sequence
from math import cos as cosine
from math import sin as sine
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from jaxtyping import Int
from torch.autograd.functional import hessian as torch_hessian
from torch.nn import functional

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, raises
from parnassus.autodiff.activations_and_losses import cross_entropy, gelu, leaky_relu, relu, sigmoid, softmax
from parnassus.autodiff.dense_network import DenseNetwork
from parnassus.autodiff.derivative_rules import Array, ArrayLike
from parnassus.autodiff.finite_differences import numerical_gradient
from parnassus.autodiff.forward_mode import jvp
from parnassus.autodiff.graph import Program, Symbol, differentiate
from parnassus.autodiff.operations import (
    Arithmetic,
    absolute,
    cos,
    erf,
    exp,
    log,
    maximum,
    mean,
    power,
    sin,
    tanh,
    total,
    transpose,
)
from parnassus.autodiff.tape import (
    Variable,
    differentiable_gradients,
    gradients,
    hessian,
    hessian_vector_product,
    value_and_gradients,
)

Node = TypeVar("Node", bound=Arithmetic)
SIZE = 3
_Step: TypeAlias = Callable[[Any, Any], Any]
_STEPS: tuple[tuple[_Step, _Step], ...] = (  # on the tape and in torch
    (lambda a, b: a + b, lambda a, b: a + b),
    (lambda a, b: a - b, lambda a, b: a - b),
    (lambda a, b: a * b, lambda a, b: a * b),
    (lambda a, b: a / (2 + b * b), lambda a, b: a / (2 + b * b)),
    (lambda a, b: tanh(a @ b), lambda a, b: (a @ b).tanh()),
    (lambda a, _: exp(-a * a), lambda a, _: (-a * a).exp()),
    (lambda a, _: log(1 + a * a), lambda a, _: (1 + a * a).log()),
    (lambda a, _: erf(a), lambda a, _: a.erf()),
    (lambda a, _: sin(a), lambda a, _: a.sin()),
    (lambda a, _: sigmoid(a), lambda a, _: a.sigmoid()),
    (lambda a, _: relu(a), lambda a, _: a.relu()),
    (lambda a, _: leaky_relu(a), lambda a, _: functional.leaky_relu(a)),
    (lambda a, _: gelu(a), lambda a, _: functional.gelu(a)),
    (lambda a, _: softmax(a), lambda a, _: a.softmax(-1)),
    (maximum, torch.maximum),
    (lambda a, b: transpose(a) + mean(b, 0), lambda a, b: a.mT + b.mean(0)),
    (lambda a, b: a - total(b, 1), lambda a, b: a - b.sum(1)),
    (lambda a, _: power(absolute(a) + 1.0, 0.5) * cos(a), lambda a, _: (a.abs() + 1).sqrt() * a.cos()),
)


def run_program(leaves: Sequence[Node], choices: Int[np.ndarray, "length 3"]) -> Node:
    """A random program on 3×3 matrices: each row of `choices` selects a step and two of the values so far."""
    pool = list(leaves)
    for which, left, right in choices:
        pool.append(_STEPS[which % len(_STEPS)][0](pool[left % len(pool)], pool[right % len(pool)]))
    return total(pool[-1] * pool[-2])


def run_torch_program(leaves: Sequence[torch.Tensor], choices: Int[np.ndarray, "length 3"]) -> torch.Tensor:
    """The same program in torch."""
    pool = list(leaves)
    for which, left, right in choices:
        pool.append(_STEPS[which % len(_STEPS)][1](pool[left % len(pool)], pool[right % len(pool)]))
    return (pool[-1] * pool[-2]).sum()


def sample_programs(count: int, length: int) -> list[tuple[list[Array], Int[np.ndarray, "length 3"]]]:
    """Initial matrices and choices; program i starts with operation i."""
    source = np.random.default_rng(0)
    programs = []
    for index in range(count):
        choices = source.integers(0, 1_000, (length, 3))
        choices[0, 0] = index
        programs.append(([source.normal(size=(SIZE, SIZE)) for _ in range(2)], choices))
    return programs


@claim("B2.1-5")
def tape_gradients_of_random_programs_equal_torch() -> Evidence:
    """On 60 random programs of 12 steps values and gradients equal torch's and central differences (book sec. 2.1)."""
    by_tape, by_torch, differences, values, torch_values = [], [], [], [], []
    for leaves, choices in sample_programs(60, 12):
        value, gradient = value_and_gradients(lambda *x, c=choices: run_program(x, c), *leaves)
        tensors = [torch.from_numpy(leaf).requires_grad_() for leaf in leaves]
        expected = run_torch_program(tensors, choices)
        torch_gradients = torch.autograd.grad(expected, tensors, materialize_grads=True)

        def value_of_first(
            x: Array, leaves: list[Array] = leaves, choices: Int[np.ndarray, "length 3"] = choices
        ) -> Array:
            return run_program([Variable(x), Variable(leaves[1])], choices).value

        scale = 1 + max(float(each.abs().max()) for each in torch_gradients)
        by_tape.append(np.stack(gradient) / scale)
        by_torch.append(torch.stack(torch_gradients).numpy() / scale)
        differences.append(numerical_gradient(value_of_first, leaves[0]) / scale)
        values.append(float(value))
        torch_values.append(float(expected.detach()))
    return all_of(
        values=close(np.array(values), np.array(torch_values), rtol=1e-11, atol=1e-12),
        gradients=close(np.stack(by_tape), np.stack(by_torch), atol=1e-12),
        differences=close(np.stack(differences), np.stack(by_tape)[:, 0], atol=1e-5),
    )


@claim("B2.1-5")
def tape_gradients_of_a_classifier_equal_torch() -> Evidence:
    """Cross-entropy of a two-layer network: all four gradients equal torch's, in float64 to 1e-13 (book sec. 2.1)."""
    source = np.random.default_rng(1)
    x, labels = source.normal(size=(20, 6)), source.integers(0, 4, 20)
    weights = [source.normal(size=shape) for shape in ((6, 8), (8,), (8, 4), (4,))]

    def loss(w1: Variable, b1: Variable, w2: Variable, b2: Variable) -> Variable:
        return cross_entropy(relu(x @ w1 + b1) @ w2 + b2, labels)

    value, by_tape = value_and_gradients(loss, *weights)
    w1, b1, w2, b2 = tensors = [torch.from_numpy(weight).requires_grad_() for weight in weights]
    logits = (torch.from_numpy(x) @ w1 + b1).relu() @ w2 + b2
    expected = functional.cross_entropy(logits, torch.from_numpy(labels))
    by_torch = torch.autograd.grad(expected, tensors)
    network = DenseNetwork((6, 8, 4), relu, source)
    network.weights = weights
    before = network.gradient_step(x, lambda outputs: cross_entropy(outputs, labels), learning_rate=0.3)
    return all_of(
        loss=close(value, expected.detach(), rtol=1e-14),
        gradients=close(
            np.concatenate([each.ravel() for each in by_tape]),
            torch.cat([each.ravel() for each in by_torch]),
            atol=1e-13,
        ),
        step_of_a_network=close(
            np.concatenate([each.ravel() for each in network.weights]),
            torch.cat([(tensor - 0.3 * each).ravel() for tensor, each in zip(tensors, by_torch, strict=True)]).detach(),
            atol=1e-13,
        ),
        loss_before_the_step=close(before, value, rtol=1e-14),
    )


@claim("B2.1-6")
def graph_gradients_equal_tape_gradients() -> Evidence:
    """Derivatives built once as a graph and then evaluated equal the tape's on 30 programs (book sec. 2.1)."""
    by_graph, by_tape = [], []
    for leaves, choices in sample_programs(30, 8):
        symbols = [Symbol(name, (SIZE, SIZE)) for name in "ab"]
        program = Program(symbols, differentiate(run_program(symbols, choices), symbols))
        for shift in (0.0, 0.3):  # one graph, several points
            points = [leaf + shift for leaf in leaves]
            by_graph.append(np.stack(program(*points)))
            by_tape.append(np.stack(value_and_gradients(lambda *x, c=choices: run_program(x, c), *points)[1]))
    return close(np.stack(by_graph), np.stack(by_tape), rtol=1e-12, atol=1e-13)


@claim("B2.1-6")
def second_derivatives_equal_torch() -> Evidence:
    """Gradients of gradients: Hessians by graph, by tape, by products and by torch agree (book sec. 2.1)."""
    x = np.random.default_rng(2).normal(size=4)
    matrix = np.random.default_rng(3).normal(size=(4, 4))

    def function(x: Node) -> Node:
        return total(gelu(tanh(x @ matrix) * x)) + total(exp(-x * x))

    symbol = Symbol("x", (4,))
    (gradient,) = differentiate(function(symbol), [symbol])
    rows = [differentiate(gradient[row], [symbol])[0] for row in range(4)]
    by_graph = np.stack(Program([symbol], rows)(x))

    def in_torch(x: torch.Tensor) -> torch.Tensor:
        return functional.gelu((x @ torch.from_numpy(matrix)).tanh() * x).sum() + (-x * x).exp().sum()

    expected = torch_hessian(in_torch, torch.from_numpy(x)).numpy()
    variable, direction = Variable(x), np.array([1.0, -2.0, 0.5, 0.0])
    directional = jvp(function, variable, Variable(direction))[1]
    return all_of(
        graph=close(by_graph, expected, rtol=1e-11, atol=1e-13),
        tape=close(hessian(function, x), expected, rtol=1e-11, atol=1e-13),
        symmetric=close(by_graph, by_graph.T, rtol=1e-11, atol=1e-13),
        product=close(hessian_vector_product(function, x, direction), expected @ direction, rtol=1e-11),
        reverse_over_forward=close(gradients(directional, [variable])[0], expected @ direction, rtol=1e-11),
    )


@claim("B2.1-6")
def higher_derivatives_of_x_sin_x() -> Evidence:
    """The k-th derivative of x sin x is x sin(x + kπ/2) − k cos(x + kπ/2), by graph and by tape (book sec. 2.1)."""
    x = Symbol("x")
    symbolic = [x * sin(x)]
    for _ in range(5):
        symbolic += differentiate(symbolic[-1], [x])
    point = 1.3
    variable = Variable(point)
    recorded = [variable * sin(variable)]
    for _ in range(5):
        recorded += differentiable_gradients(recorded[-1], [variable])
    phases = [order * np.pi / 2 for order in range(6)]
    formula = np.array(
        [point * sine(point + phase) - order * cosine(point + phase) for order, phase in enumerate(phases)]
    )
    by_graph: list[ArrayLike] = list(Program([x], symbolic)(point))
    return all_of(
        graph=close(np.array(by_graph), formula, rtol=1e-12),
        tape=close(np.array([float(each.value) for each in recorded]), formula, rtol=1e-12),
    )


@erratum(
    "B2.1-6", printed="PyTorch gives numbers, no graph of the derivative", right="with create_graph=True it has one"
)
def torch_can_differentiate_its_backward_pass() -> Correction:
    """With create_graph=True torch records the backward pass, which by default it does not (book sec. 2.1)."""
    x = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)

    def derivative(*, create_graph: bool) -> torch.Tensor:
        return torch.autograd.grad(x * x.sin(), x, create_graph=create_graph)[0]

    (second,) = torch.autograd.grad(derivative(create_graph=True), x)
    start = Variable(1.3)
    (by_tape,) = gradients(differentiable_gradients(start * sin(start), [start])[0], [start])
    return Correction(
        printed=raises(RuntimeError, lambda: torch.autograd.grad(derivative(create_graph=True), x)),
        corrected=all_of(
            by_default=raises(RuntimeError, lambda: torch.autograd.grad(derivative(create_graph=False), x)),
            create_graph=close(second, 2 * cosine(1.3) - 1.3 * sine(1.3), rtol=1e-14),
            tape=close(by_tape, 2 * cosine(1.3) - 1.3 * sine(1.3), rtol=1e-14),
        ),
    )
