"""Claims about the two engines: numbers from symbols, and symbols from symbols (book sec. 2.1)."""

from collections.abc import Callable, Sequence
from math import cos as cosine
from math import sin as sine
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from jaxtyping import Int
from torch.autograd.functional import hessian as torch_hessian
from torch.nn import functional

from parnassus.atlas import Correction, Evidence, all_of, at_least, claim, close, erratum, raises
from parnassus.autodiff.finite_differences import difference_gradient
from parnassus.autodiff.forward import push_forward
from parnassus.autodiff.functions import cross_entropy, gelu, leaky_relu, relu, sigmoid, softmax
from parnassus.autodiff.graph import Program, Symbol, differentiate
from parnassus.autodiff.operation import Array, Known
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
from parnassus.autodiff.tape import Variable, derivatives, hessian, hessian_product, pull_back, value_and_gradients

Node = TypeVar("Node", bound=Arithmetic)
SIZE = 3
_Step: TypeAlias = Callable[[Any, Any], Any]
_STEPS: tuple[tuple[_Step, _Step], ...] = (  # ours, and the same in torch
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


def grow(leaves: Sequence[Node], choices: Int[np.ndarray, "length 3"]) -> Node:
    """A random program on 3×3 matrices: each row of `choices` picks a step and two of the values so far."""
    pool = list(leaves)
    for which, left, right in choices:
        pool.append(_STEPS[which % len(_STEPS)][0](pool[left % len(pool)], pool[right % len(pool)]))
    return total(pool[-1] * pool[-2])


def torch_grow(leaves: Sequence[torch.Tensor], choices: Int[np.ndarray, "length 3"]) -> torch.Tensor:
    """The same program in torch."""
    pool = list(leaves)
    for which, left, right in choices:
        pool.append(_STEPS[which % len(_STEPS)][1](pool[left % len(pool)], pool[right % len(pool)]))
    return (pool[-1] * pool[-2]).sum()


def random_programs(count: int, length: int) -> list[tuple[list[Array], Int[np.ndarray, "length 3"]]]:
    """Starting matrices and choices; the first programs begin with each operation once."""
    source = np.random.default_rng(0)
    programs = []
    for index in range(count):
        choices = source.integers(0, 1_000, (length, 3))
        choices[0, 0] = index
        programs.append(([source.normal(size=(SIZE, SIZE)) for _ in range(2)], choices))
    return programs


@claim("B2.1-5")
def the_tape_differentiates_random_programs_as_torch_does() -> Evidence:
    """On 60 random programs of 12 steps values and gradients equal torch's and central differences (book sec. 2.1)."""
    ours, theirs, looked, values, torch_values = [], [], [], [], []
    for leaves, choices in random_programs(60, 12):
        value, slopes = value_and_gradients(lambda *x, c=choices: grow(x, c), *leaves)
        tensors = [torch.from_numpy(leaf).requires_grad_() for leaf in leaves]
        expected = torch_grow(tensors, choices)
        slopes_of_torch = torch.autograd.grad(expected, tensors, materialize_grads=True)

        def of_first(x: Array, leaves: list[Array] = leaves, choices: Int[np.ndarray, "length 3"] = choices) -> Array:
            return grow([Variable(x), Variable(leaves[1])], choices).value

        scale = 1 + max(float(slope.abs().max()) for slope in slopes_of_torch)
        ours.append(np.stack(slopes) / scale)
        theirs.append(torch.stack(slopes_of_torch).numpy() / scale)
        looked.append(difference_gradient(of_first, leaves[0]) / scale)
        values.append(float(value))
        torch_values.append(float(expected.detach()))
    return all_of(
        values=close(np.array(values), np.array(torch_values), rtol=1e-11, atol=1e-12),
        gradients=close(np.stack(ours), np.stack(theirs), atol=1e-12),
        differences=close(np.stack(looked), np.stack(ours)[:, 0], atol=1e-5),
    )


@claim("B2.1-5")
def the_tape_takes_the_gradient_of_a_classifier() -> Evidence:
    """Cross-entropy of a two-layer network: all four gradients equal torch's, in float64 to 1e-13 (book sec. 2.1)."""
    source = np.random.default_rng(1)
    x, labels = source.normal(size=(20, 6)), source.integers(0, 4, 20)
    weights = [source.normal(size=shape) for shape in ((6, 8), (8,), (8, 4), (4,))]

    def loss(w1: Variable, b1: Variable, w2: Variable, b2: Variable) -> Variable:
        return cross_entropy(relu(x @ w1 + b1) @ w2 + b2, labels)

    value, slopes = value_and_gradients(loss, *weights)
    w1, b1, w2, b2 = tensors = [torch.from_numpy(weight).requires_grad_() for weight in weights]
    logits = (torch.from_numpy(x) @ w1 + b1).relu() @ w2 + b2
    expected = functional.cross_entropy(logits, torch.from_numpy(labels))
    theirs = torch.autograd.grad(expected, tensors)
    return all_of(
        loss=close(value, expected.detach(), rtol=1e-14),
        gradients=close(
            np.concatenate([slope.ravel() for slope in slopes]),
            torch.cat([each.ravel() for each in theirs]),
            atol=1e-13,
        ),
    )


@claim("B2.1-6")
def the_graph_gives_the_numbers_of_the_tape() -> Evidence:
    """A derivative built once as a graph, then filled with numbers, equals the tape's: 30 programs (book sec. 2.1)."""
    by_graph, by_tape = [], []
    for leaves, choices in random_programs(30, 8):
        symbols = [Symbol(name, (SIZE, SIZE)) for name in "ab"]
        program = Program(symbols, differentiate(grow(symbols, choices), symbols))
        for shift in (0.0, 0.3):  # one graph, several points
            points = [leaf + shift for leaf in leaves]
            by_graph.append(np.stack(program(*points)))
            by_tape.append(np.stack(value_and_gradients(lambda *x, c=choices: grow(x, c), *points)[1]))
    return close(np.stack(by_graph), np.stack(by_tape), rtol=1e-12, atol=1e-13)


@claim("B2.1-6")
def differentiating_twice_gives_curvature() -> Evidence:
    """Gradients of gradients: Hessians by graph, by tape, by products and by torch agree (book sec. 2.1)."""
    x = np.random.default_rng(2).normal(size=4)
    mix = np.random.default_rng(3).normal(size=(4, 4))

    def bumpy(x: Node) -> Node:
        return total(gelu(tanh(x @ mix) * x)) + total(exp(-x * x))

    symbol = Symbol("x", (4,))
    (slope,) = differentiate(bumpy(symbol), [symbol])
    rows = [differentiate(slope[row], [symbol])[0] for row in range(4)]
    by_graph = np.stack(Program([symbol], rows)(x))

    def in_torch(x: torch.Tensor) -> torch.Tensor:
        return functional.gelu((x @ torch.from_numpy(mix)).tanh() * x).sum() + (-x * x).exp().sum()

    expected = torch_hessian(in_torch, torch.from_numpy(x)).numpy()
    variable, direction = Variable(x), np.array([1.0, -2.0, 0.5, 0.0])
    pushed = push_forward(bumpy, variable, Variable(direction))[1]
    return all_of(
        graph=close(by_graph, expected, rtol=1e-11, atol=1e-13),
        tape=close(hessian(bumpy, x), expected, rtol=1e-11, atol=1e-13),
        symmetric=close(by_graph, by_graph.T, rtol=1e-11, atol=1e-13),
        product=close(hessian_product(bumpy, x, direction), expected @ direction, rtol=1e-11),
        back_over_forward=close(pull_back(pushed, [variable])[0], expected @ direction, rtol=1e-11),
    )


@claim("B2.1-6")
def five_derivatives_of_x_sin_x() -> Evidence:
    """The k-th derivative of x sin x is x sin(x + kπ/2) − k cos(x + kπ/2), by graph and by tape (book sec. 2.1)."""
    x = Symbol("x")
    found = [x * sin(x)]
    for _ in range(5):
        found += differentiate(found[-1], [x])
    at = 1.3
    variable = Variable(at)
    recorded = [variable * sin(variable)]
    for _ in range(5):
        recorded += derivatives(recorded[-1], [variable])
    turns = [order * np.pi / 2 for order in range(6)]
    formula = np.array([at * sine(at + turn) - order * cosine(at + turn) for order, turn in enumerate(turns)])
    by_graph: list[Known] = list(Program([x], found)(at))
    return all_of(
        graph=close(np.array(by_graph), formula, rtol=1e-12),
        tape=close(np.array([float(each.value) for each in recorded]), formula, rtol=1e-12),
    )


@erratum(
    "B2.1-6", printed="PyTorch gives numbers, no graph of the derivative", right="with create_graph=True it has one"
)
def torch_can_differentiate_its_own_backward_pass() -> Correction:
    """By default a gradient of torch is a number; asked to, torch records how it came about (book sec. 2.1)."""
    x = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)

    def slope(*, create_graph: bool) -> torch.Tensor:
        return torch.autograd.grad(x * x.sin(), x, create_graph=create_graph)[0]

    (again,) = torch.autograd.grad(slope(create_graph=True), x)
    return Correction(
        printed=raises(RuntimeError, lambda: torch.autograd.grad(slope(create_graph=True), x)),
        corrected=all_of(
            by_default_none=raises(RuntimeError, lambda: torch.autograd.grad(slope(create_graph=False), x)),
            asked_to=close(again, 2 * cosine(1.3) - 1.3 * sine(1.3), rtol=1e-14),
        ),
    )


@erratum("B2.1-6", printed="Caffe was merged into PyTorch", right="Caffe2, its successor")
def what_was_merged_is_caffe2() -> Correction:
    """The headers that come with torch have a folder of Caffe2 and none of Caffe (book sec. 2.1)."""
    headers = Path(torch.__file__).parent / "include"
    return Correction(
        printed=at_least(len(list(headers.glob("caffe/**/*.h"))), 1),
        corrected=at_least(len(list(headers.glob("caffe2/**/*.h"))), 1),
    )
