"""Interactive view of an expression's computation graph, its values and gradients (book ch. 2)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from parnassus.atlas.decorators import probe
from parnassus.autodiff.activations_and_losses import relu, sigmoid
from parnassus.autodiff.derivative_rules import Array
from parnassus.autodiff.finite_differences import numerical_gradient
from parnassus.autodiff.graph_layout import layout_graph
from parnassus.autodiff.operations import exp, log, sin, tanh
from parnassus.autodiff.paths import incoming_edges
from parnassus.autodiff.reverse_mode import topological_order
from parnassus.autodiff.tape import Variable, gradients
from parnassus.autodiff.two_neuron_network import two_neuron_network
from parnassus.widgets import Answer, FloatSlider, Graph, GraphEdge, GraphNode, Numbers, Select


@dataclass(frozen=True)
class Expression:
    """A formula in up to three scalars: its text, the names of its inputs, and the function."""

    formula: str
    inputs: tuple[str, ...]
    build: Callable[..., Variable]


def _cross_entropy(a: Variable, b: Variable, c: Variable) -> Variable:
    return log(exp(a) + exp(b) + exp(c)) - a


EXPRESSIONS = (
    Expression("two neurons: σ(w₁x) + σ(w₂x)", ("x", "w₁", "w₂"), lambda x, w1, w2: two_neuron_network(x, w1, w2).y),
    Expression("x sin x", ("x",), lambda x: x * sin(x)),
    Expression("product: a b c", ("a", "b", "c"), lambda a, b, c: a * b * c),
    Expression(
        "squared error of a neuron: (relu(wx + b) − 1)²", ("x", "w", "b"), lambda x, w, b: (relu(w * x + b) - 1.0) ** 2
    ),
    Expression("cross-entropy of logits a, b, c with label a", ("a", "b", "c"), _cross_entropy),
    Expression("binary cross-entropy: −log σ(wx + b)", ("x", "w", "b"), lambda x, w, b: -log(sigmoid(w * x + b))),
    Expression("a shared input: tanh(x) tanh(x + y)", ("x", "y"), lambda x, y: tanh(x) * tanh(x + y)),
    Expression("quotient: (a − b) / (a² + b² + 1)", ("a", "b"), lambda a, b: (a - b) / (a**2 + b**2 + 1.0)),
)


@probe()
def differentiate_an_expression(
    expression: Annotated[int, Select("expression", [each.formula for each in EXPRESSIONS])] = 0,
    first: Annotated[float, FloatSlider("first input", -3.0, 3.0)] = 0.7,
    second: Annotated[float, FloatSlider("second input", -3.0, 3.0)] = 1.3,
    third: Annotated[float, FloatSlider("third input", -3.0, 3.0)] = -0.8,
) -> list[Answer]:
    """Forward and backward pass on the computation graph of an expression (book sec. 2.1).

    Each node shows its value, each edge the gradient that is passed back along it; the gradient of an input is the sum
    over its edges. Change an input and observe which gradients vanish.
    """
    chosen = EXPRESSIONS[expression]
    point = np.array([first, second, third])[: len(chosen.inputs)]
    inputs = [Variable(each) for each in point]
    output = chosen.build(*inputs)
    nodes = topological_order(output)
    gradient = dict(zip(nodes, map(float, gradients(output, nodes)), strict=True))

    def edge_gradient(node: Variable, index: int) -> str:
        """The gradient passed back along one edge: the gradient of its end times the local derivative."""
        edge = sum(isinstance(each, Variable) for each in node.arguments[:index])
        return _format(gradient[node] * incoming_edges(node)[edge].derivative)

    def value(inputs: Array) -> Array:
        return chosen.build(*(Variable(each) for each in inputs)).value

    names = dict(zip(inputs, chosen.inputs, strict=True))
    layout = layout_graph(output, names=names, value=lambda node: _format(float(node.value)), edge=edge_gradient)
    numerical = numerical_gradient(value, point)
    values: dict[str, float | str] = {"value": float(output.value)}
    for name, node, difference in zip(chosen.inputs, inputs, numerical, strict=True):
        values[f"∂/∂{name} by backpropagation"] = gradient[node]
        values[f"∂/∂{name} by central difference"] = float(difference)
    return [
        Graph(
            "Computation graph",
            [GraphNode(node.label, node.value, node.x, node.y, node.is_input) for node in layout.nodes],
            [GraphEdge(edge.start, edge.end, edge.label, edge.waypoints) for edge in layout.edges],
            about=f"{chosen.formula}; inputs in order: {', '.join(chosen.inputs)}.",
        ),
        Numbers("Gradient", values, about="Backpropagation is exact up to rounding; differences are approximate."),
    ]


def _format(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")
