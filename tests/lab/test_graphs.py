"""Graphs as SVGs: positions of nodes and edges, the description, and escaped text."""

import re
from typing import Any
from xml.etree import ElementTree

from parnassus.lab.graphs import COLUMN, HALF_HEIGHT, HALF_WIDTH, ROW, graph_svg


def graph(**changes: Any) -> dict[str, Any]:
    nodes = [
        {"label": "x", "value": "0.7", "x": 0.0, "y": 1.0, "marked": True},
        {"label": "w", "value": "2", "x": 0.0, "y": -1.0, "marked": True},
        {"label": "×", "value": "1.4", "x": 2.0, "y": 0.0, "marked": False},
    ]
    edges = [
        {"start": 0, "end": 2, "label": "2", "waypoints": []},
        {"start": 1, "end": 2, "label": "0.7", "waypoints": [[1.0, -0.5]]},
    ]
    return {"title": "The graph", "nodes": nodes, "edges": edges, **changes}


def parse_svg(answer: dict[str, Any]) -> ElementTree.Element:
    return ElementTree.fromstring(graph_svg(answer))


def test_nodes_are_placed_in_columns_and_rows() -> None:
    boxes = parse_svg(graph()).findall("rect")
    assert len(boxes) == 3
    centres_x = [float(box.attrib["x"]) + HALF_WIDTH for box in boxes]
    centres_y = [float(box.attrib["y"]) + HALF_HEIGHT for box in boxes]
    assert centres_x[0] == centres_x[1]
    assert centres_x[2] - centres_x[0] == 2 * COLUMN
    assert (centres_y[1] - centres_y[0], centres_y[1] - centres_y[2]) == (2 * ROW, ROW)  # y points upwards
    assert [box.attrib.get("class") for box in boxes] == ["marked", "marked", None]


def test_all_nodes_lie_inside_the_image() -> None:
    svg = parse_svg(graph())
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    for box in svg.findall("rect"):
        assert 0 <= float(box.attrib["x"]) <= width - 2 * HALF_WIDTH
        assert 0 <= float(box.attrib["y"]) <= height - 2 * HALF_HEIGHT


def test_edges_leave_nodes_on_the_right_and_enter_on_the_left() -> None:
    svg = parse_svg(graph())
    boxes = svg.findall("rect")
    lines = [path.attrib["d"] for path in svg.findall("path") if path.attrib.get("class") != "head"]
    assert len(lines) == 2
    for line, start in zip(lines, boxes[:2], strict=True):
        numbers = [float(number) for number in re.findall(r"-?\d+\.\d+", line)]
        assert numbers[0] == float(start.attrib["x"]) + 2 * HALF_WIDTH
        assert numbers[1] == float(start.attrib["y"]) + HALF_HEIGHT
        assert 0 < float(boxes[2].attrib["x"]) - numbers[-2] < 10  # space for the head
        assert numbers[-1] == float(boxes[2].attrib["y"]) + HALF_HEIGHT
    assert [line.count("C") for line in lines] == [1, 2]  # the second has a waypoint


def test_label_describes_the_graph() -> None:
    label = parse_svg(graph()).attrib["aria-label"]
    assert label == "The graph: x with value 0.7; w with value 2; × with value 1.4; x to × with 2; w to × with 0.7"


def test_labels_are_escaped() -> None:
    answer = graph(title='"><script>1</script>')
    answer["nodes"][0] |= {"label": "<b>x</b>", "value": "<i>&</i>"}
    answer["edges"][0]["label"] = "<svg onload=1>"
    svg = parse_svg(answer)
    assert {each.tag for each in svg.iter()} == {"svg", "rect", "text", "path"}
    assert {"<b>x</b>", "<i>&</i>", "<svg onload=1>"} <= {text.text for text in svg.iter("text")}


def test_edges_to_the_left_pass_below_and_loops_above() -> None:
    backwards = [{"start": 2, "end": 0, "label": "back", "waypoints": []}]
    loop = [{"start": 1, "end": 1, "label": "again", "waypoints": []}]
    down = [{"start": 0, "end": 1, "label": "down", "waypoints": []}]
    for edges, label in ((backwards, "back"), (loop, "again"), (down, "down")):
        svg = parse_svg(graph(edges=edges))
        _, _, width, height = map(float, svg.attrib["viewBox"].split())
        line, head = svg.findall("path")
        numbers = [float(number) for number in re.findall(r"-?\d+\.\d+", line.attrib["d"])]
        assert all(0 <= x <= width for x in numbers[::2])
        assert all(0 <= y <= height for y in numbers[1::2])
        assert head.attrib["class"] == "head"
        (text_element,) = [text for text in svg.iter("text") if text.text == label]
        assert 0 <= float(text_element.attrib["y"]) <= height
    nodes, curve = node_tops(graph(edges=backwards)), curve_numbers(graph(edges=backwards))
    assert max(curve[1::2]) > nodes[2] + 2 * HALF_HEIGHT
    nodes, curve = node_tops(graph(edges=loop)), curve_numbers(graph(edges=loop))
    assert min(curve[1::2]) < nodes[1]


def node_tops(answer: dict[str, Any]) -> list[float]:
    return [float(node.attrib["y"]) for node in parse_svg(answer).findall("rect")]


def curve_numbers(answer: dict[str, Any]) -> list[float]:
    """The coordinates in the first path."""
    return [float(number) for number in re.findall(r"-?\d+\.\d+", parse_svg(answer).findall("path")[0].attrib["d"])]
