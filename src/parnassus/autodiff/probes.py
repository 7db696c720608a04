"""Things to touch: an expression, its graph, and the numbers that flow through it both ways (book ch. 2)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from parnassus.atlas.marks import probe
from parnassus.autodiff.diagrams import diagram
from parnassus.autodiff.finite_differences import difference_gradient
from parnassus.autodiff.functions import relu, sigmoid
from parnassus.autodiff.operation import Array
from parnassus.autodiff.operations import exp, log, sin, tanh
from parnassus.autodiff.paths import edges_into
from parnassus.autodiff.sweeps import in_order
from parnassus.autodiff.tape import Variable, pull_back
from parnassus.autodiff.toy_network import two_neurons
from parnassus.touch import Answer, Arrow, Box, Graph, Numbers, Pick, Real


@dataclass(frozen=True)
class Expression:
    """A formula in up to three numbers: how it is written, what its inputs are called, what it computes."""

    written: str
    inputs: tuple[str, ...]
    build: Callable[..., Variable]


def _surprise(a: Variable, b: Variable, c: Variable) -> Variable:
    return log(exp(a) + exp(b) + exp(c)) - a


EXPRESSIONS = (
    Expression("two neurons: σ(w₁x) + σ(w₂x)", ("x", "w₁", "w₂"), lambda x, w1, w2: two_neurons(x, w1, w2).y),
    Expression("x sin x", ("x",), lambda x: x * sin(x)),
    Expression("a product of three: a b c", ("a", "b", "c"), lambda a, b, c: a * b * c),
    Expression("a neuron's error: (relu(wx + b) − 1)²", ("x", "w", "b"), lambda x, w, b: (relu(w * x + b) - 1.0) ** 2),
    Expression("cross-entropy at the first of three logits", ("a", "b", "c"), _surprise),
    Expression("binary cross-entropy: −log σ(wx + b)", ("x", "w", "b"), lambda x, w, b: -log(sigmoid(w * x + b))),
    Expression("a forked chain: tanh(x) tanh(x + y)", ("x", "y"), lambda x, y: tanh(x) * tanh(x + y)),
    Expression("a quotient: (a − b) / (a² + b² + 1)", ("a", "b"), lambda a, b: (a - b) / (a**2 + b**2 + 1.0)),
)


@probe()
def differentiate_an_expression(
    expression: Annotated[int, Pick("expression", [each.written for each in EXPRESSIONS])] = 0,
    first: Annotated[float, Real("first input", -3.0, 3.0)] = 0.7,
    second: Annotated[float, Real("second input", -3.0, 3.0)] = 1.3,
    third: Annotated[float, Real("third input", -3.0, 3.0)] = -0.8,
) -> list[Answer]:
    """Values flow forwards through a graph, gradients flow back (book sec. 2.1).

    Each box holds its value, each arrow the gradient that comes back along it; what comes back to an input along
    several arrows is added. Move an input and watch which arrows fall silent.
    """
    chosen = EXPRESSIONS[expression]
    start = np.array([first, second, third])[: len(chosen.inputs)]
    inputs = [Variable(number) for number in start]
    output = chosen.build(*inputs)
    nodes = in_order(output)
    gradient = dict(zip(nodes, map(float, pull_back(output, nodes)), strict=True))

    def returning(node: Variable, place: int) -> str:
        """What comes back along one edge: the gradient that arrives at its end times the local slope."""
        used = sum(isinstance(each, Variable) for each in node.arguments[:place])
        return _short(gradient[node] * edges_into(node)[used].slope)

    def value(point: Array) -> Array:
        return chosen.build(*(Variable(number) for number in point)).value

    names = dict(zip(inputs, chosen.inputs, strict=True))
    picture = diagram(output, names=names, value=lambda node: _short(float(node.value)), edge=returning)
    looked = difference_gradient(value, start)
    numbers: dict[str, float | str] = {"value": float(output.value)}
    for name, node, slope in zip(chosen.inputs, inputs, looked, strict=True):
        numbers[f"∂/∂{name} by sweep"] = gradient[node]
        numbers[f"∂/∂{name} by difference"] = float(slope)
    return [
        Graph(
            "The graph",
            [Box(spot.label, spot.value, spot.across, spot.up, spot.is_input) for spot in picture.spots],
            [Arrow(link.start, link.end, link.label, link.through) for link in picture.links],
            about=f"{chosen.written}; the inputs are {', '.join(chosen.inputs)}, in this order.",
        ),
        Numbers(
            "The gradient", numbers, about="The sweep multiplies along paths and adds over them; a difference looks."
        ),
    ]


def _short(number: float) -> str:
    return f"{number:.3g}".replace("-", "−")
