"""Gradients on the edges of the displayed graph add up to the gradient of each input."""

from collections import defaultdict

import numpy as np
import pytest
import torch

from parnassus.autodiff.probes import EXPRESSIONS, differentiate_an_expression
from parnassus.widgets import Graph, Numbers, evaluate_probe, read_controls

CONTROLS = read_controls(differentiate_an_expression, None)
POINT = {"first": 0.6, "second": -1.1, "third": 0.9}


def evaluate(**values: object) -> tuple[Graph, Numbers]:
    graph, numbers = evaluate_probe(differentiate_an_expression, None, CONTROLS, values)
    assert isinstance(graph, Graph)
    assert isinstance(numbers, Numbers)
    return graph, numbers


@pytest.mark.parametrize("expression", range(len(EXPRESSIONS)), ids=lambda index: EXPRESSIONS[index].formula)
def test_edge_gradients_of_an_input_add_up_to_its_gradient(expression: int) -> None:
    graph, numbers = evaluate(expression=expression, **POINT)
    incoming: dict[str, float] = defaultdict(float)
    for arrow in graph.edges:
        incoming[graph.nodes[arrow.start].label] += float(arrow.label.replace("−", "-"))
    for name in EXPRESSIONS[expression].inputs:
        exact = numbers.values[f"∂/∂{name} by backpropagation"]
        numerical = numbers.values[f"∂/∂{name} by central difference"]
        assert isinstance(exact, float)
        assert incoming[name] == pytest.approx(exact, abs=0.02)  # arrows have three digits
        assert numerical == pytest.approx(exact, abs=1e-7)


def test_gradient_of_a_product() -> None:
    _, numbers = evaluate(expression=2, **POINT)
    a, b, c = POINT.values()
    assert numbers.values["value"] == pytest.approx(a * b * c)
    assert numbers.values["∂/∂a by backpropagation"] == pytest.approx(b * c)
    assert numbers.values["∂/∂b by backpropagation"] == pytest.approx(a * c)
    assert numbers.values["∂/∂c by backpropagation"] == pytest.approx(a * b)


def test_gradient_of_cross_entropy_is_softmax_minus_label() -> None:
    _, numbers = evaluate(expression=4, **POINT)
    softmax = torch.tensor(list(POINT.values()), dtype=torch.float64).softmax(0).numpy()
    gradient = [numbers.values[f"∂/∂{name} by backpropagation"] for name in "abc"]
    np.testing.assert_allclose(np.array(gradient, dtype=float), softmax - [1, 0, 0], rtol=1e-12)


def test_gradient_of_a_dead_unit_is_zero() -> None:
    _, numbers = evaluate(expression=3, first=1.0, second=-2.0, third=0.5)
    assert [numbers.values[f"∂/∂{name} by backpropagation"] for name in "xwb"] == [0.0, 0.0, 0.0]
