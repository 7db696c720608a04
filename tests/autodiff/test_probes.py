"""The expression under the fingers: what flows back along the arrows adds up to the gradient."""

from collections import defaultdict

import numpy as np
import pytest
import torch

from parnassus.autodiff.probes import EXPRESSIONS, differentiate_an_expression
from parnassus.touch import Graph, Numbers, answer, controls_of

CONTROLS = controls_of(differentiate_an_expression, None)
POINT = {"first": 0.6, "second": -1.1, "third": 0.9}


def asked(**values: object) -> tuple[Graph, Numbers]:
    graph, numbers = answer(differentiate_an_expression, None, CONTROLS, values)
    assert isinstance(graph, Graph)
    assert isinstance(numbers, Numbers)
    return graph, numbers


@pytest.mark.parametrize("expression", range(len(EXPRESSIONS)), ids=lambda index: EXPRESSIONS[index].written)
def test_what_comes_back_to_an_input_adds_up_to_its_gradient(expression: int) -> None:
    graph, numbers = asked(expression=expression, **POINT)
    arriving: dict[str, float] = defaultdict(float)
    for arrow in graph.arrows:
        arriving[graph.boxes[arrow.start].label] += float(arrow.label.replace("−", "-"))
    for name in EXPRESSIONS[expression].inputs:
        swept, looked = numbers.values[f"∂/∂{name} by sweep"], numbers.values[f"∂/∂{name} by difference"]
        assert isinstance(swept, float)
        assert arriving[name] == pytest.approx(swept, abs=0.02)  # arrows have three digits
        assert looked == pytest.approx(swept, abs=1e-7)


def test_a_product_passes_the_others_back() -> None:
    _, numbers = asked(expression=2, **POINT)
    a, b, c = POINT.values()
    assert numbers.values["value"] == pytest.approx(a * b * c)
    assert numbers.values["∂/∂a by sweep"] == pytest.approx(b * c)
    assert numbers.values["∂/∂b by sweep"] == pytest.approx(a * c)
    assert numbers.values["∂/∂c by sweep"] == pytest.approx(a * b)


def test_cross_entropy_passes_softmax_minus_label_back() -> None:
    _, numbers = asked(expression=4, **POINT)
    softmax = torch.tensor(list(POINT.values()), dtype=torch.float64).softmax(0).numpy()
    slopes = [numbers.values[f"∂/∂{name} by sweep"] for name in "abc"]
    np.testing.assert_allclose(np.array(slopes, dtype=float), softmax - [1, 0, 0], rtol=1e-12)


def test_a_dead_unit_passes_nothing_back() -> None:
    _, numbers = asked(expression=3, first=1.0, second=-2.0, third=0.5)
    assert [numbers.values[f"∂/∂{name} by sweep"] for name in "xwb"] == [0.0, 0.0, 0.0]
