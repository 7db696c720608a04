"""Positions of nodes: arguments left of results, a minimum distance, one arrow per edge."""

import numpy as np
import pytest

from parnassus.autodiff import GraphLayout, Symbol, Variable, layout_graph, sin, tanh, two_neuron_network


def make_layout(output: Variable, names: dict[Variable, str] | None = None) -> GraphLayout:
    return layout_graph(
        output, names=names or {}, value=lambda node: f"{float(node.value):g}", edge=lambda _, index: str(index)
    )


def test_two_neuron_network_has_four_columns() -> None:
    net = two_neuron_network(Variable(1.0), Variable(2.0), Variable(3.0))
    layout = make_layout(net.y, net.names)
    columns = {node.label.split(" ")[0]: node.x for node in layout.nodes}
    assert columns == {"x": 0, "w₁": 0, "w₂": 0, "z₁": 1, "z₂": 1, "h₁": 2, "h₂": 2, "y": 3}
    assert len(layout.edges) == 8
    assert {node.label for node in layout.nodes if node.is_input} == {"x", "w₁", "w₂"}
    y = {node.label[0:2]: node.y for node in layout.nodes}
    assert y["x"] == pytest.approx(y["y "])  # a shared input lies between its uses


def test_edges_have_one_waypoint_per_intermediate_column() -> None:
    x, b = Variable(0.5), Variable(1.0)
    y = tanh(sin(tanh(x))) + x * b
    layout = make_layout(y)
    for edge in layout.edges:
        columns = [
            layout.nodes[edge.start].x,
            *(x for x, _ in edge.waypoints),
            layout.nodes[edge.end].x,
        ]
        assert np.diff(columns).tolist() == [1.0] * (len(columns) - 1)


def test_nodes_of_a_column_are_at_least_one_row_apart() -> None:
    x, w = Variable(0.5), Variable(1.0)
    terms = [sin(x * w), tanh(x), x * x, w * w, sin(w)]
    y = terms[0]
    for term in terms[1:]:
        y = y + term
    layout = make_layout(y)
    points = [(node.x, node.y) for node in layout.nodes] + [point for edge in layout.edges for point in edge.waypoints]
    for column in {column for column, _ in points}:
        heights = sorted(height for each, height in points if each == column)
        assert all(gap >= 1 - 1e-9 for gap in np.diff(heights))


def test_input_lies_one_column_left_of_its_first_use() -> None:
    x, b = Variable(0.5), Variable(1.0)
    layout = make_layout(sin(sin(x)) * b, {b: "b"})
    (node,) = (node for node in layout.nodes if node.label == "b")
    assert node.x == 2


def test_node_used_twice_has_one_edge_with_both_labels() -> None:
    x = Variable(3.0)
    (edge,) = make_layout(x * x).edges
    assert edge.label == "0 + 1"


def test_labels_contain_the_operation_and_its_constant() -> None:
    x = Variable(3.0)
    assert [node.label for node in make_layout((x * 2.0) ** 2, {x: "x"}).nodes] == ["x", "× 2", "x²"]
    s = Symbol("s")
    layout = layout_graph(s + 1.5, names={}, value=lambda _: "", edge=lambda _node, _index: "")
    assert [node.label for node in layout.nodes] == ["s", "+ 1.5"]
