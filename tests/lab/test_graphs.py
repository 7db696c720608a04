"""A graph on a page: every box and arrow in its place, what comes from outside only ever text."""

import re
from typing import Any
from xml.etree import ElementTree

from parnassus.lab.graphs import COLUMN, HIGH, ROW, WIDE, graph_svg


def graph(**changes: Any) -> dict[str, Any]:
    boxes = [
        {"label": "x", "value": "0.7", "across": 0.0, "up": 1.0, "marked": True},
        {"label": "w", "value": "2", "across": 0.0, "up": -1.0, "marked": True},
        {"label": "×", "value": "1.4", "across": 2.0, "up": 0.0, "marked": False},
    ]
    arrows = [
        {"start": 0, "end": 2, "label": "2", "through": []},
        {"start": 1, "end": 2, "label": "0.7", "through": [[1.0, -0.5]]},
    ]
    return {"title": "The graph", "boxes": boxes, "arrows": arrows, **changes}


def drawn(answer: dict[str, Any]) -> ElementTree.Element:
    return ElementTree.fromstring(graph_svg(answer))


def test_boxes_stand_in_columns_and_rows() -> None:
    boxes = drawn(graph()).findall("rect")
    assert len(boxes) == 3
    across = [float(box.attrib["x"]) + WIDE for box in boxes]
    down = [float(box.attrib["y"]) + HIGH for box in boxes]
    assert across[0] == across[1]
    assert across[2] - across[0] == 2 * COLUMN
    assert (down[1] - down[0], down[1] - down[2]) == (2 * ROW, ROW)  # up on the page is up in the graph
    assert [box.attrib.get("class") for box in boxes] == ["marked", "marked", None]


def test_everything_lies_inside_the_picture() -> None:
    picture = drawn(graph())
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    for box in picture.findall("rect"):
        assert 0 <= float(box.attrib["x"]) <= width - 2 * WIDE
        assert 0 <= float(box.attrib["y"]) <= height - 2 * HIGH


def test_an_arrow_leaves_a_box_on_the_right_and_enters_one_on_the_left() -> None:
    picture = drawn(graph())
    boxes = picture.findall("rect")
    lines = [path.attrib["d"] for path in picture.findall("path") if path.attrib.get("class") != "head"]
    assert len(lines) == 2
    for line, start in zip(lines, boxes[:2], strict=True):
        numbers = [float(number) for number in re.findall(r"-?\d+\.\d+", line)]
        assert numbers[0] == float(start.attrib["x"]) + 2 * WIDE
        assert numbers[1] == float(start.attrib["y"]) + HIGH
        assert 0 < float(boxes[2].attrib["x"]) - numbers[-2] < 10  # room for the head
        assert numbers[-1] == float(boxes[2].attrib["y"]) + HIGH
    assert [line.count("C") for line in lines] == [1, 2]  # the second passes a place of its own


def test_it_is_told_in_words() -> None:
    label = drawn(graph()).attrib["aria-label"]
    assert label == "The graph: x holds 0.7; w holds 2; × holds 1.4; x to × with 2; w to × with 0.7"


def test_names_from_outside_are_text() -> None:
    answer = graph(title='"><script>1</script>')
    answer["boxes"][0] |= {"label": "<b>x</b>", "value": "<i>&</i>"}
    answer["arrows"][0]["label"] = "<svg onload=1>"
    picture = drawn(answer)
    assert {each.tag for each in picture.iter()} == {"svg", "rect", "text", "path"}
    assert {"<b>x</b>", "<i>&</i>", "<svg onload=1>"} <= {text.text for text in picture.iter("text")}


def test_arrows_that_lead_back_hang_below_and_loops_stand_above() -> None:
    backwards = [{"start": 2, "end": 0, "label": "back", "through": []}]
    loop = [{"start": 1, "end": 1, "label": "again", "through": []}]
    down = [{"start": 0, "end": 1, "label": "down", "through": []}]
    for arrows, label in ((backwards, "back"), (loop, "again"), (down, "down")):
        picture = drawn(graph(arrows=arrows))
        _, _, width, height = map(float, picture.attrib["viewBox"].split())
        line, head = picture.findall("path")
        numbers = [float(number) for number in re.findall(r"-?\d+\.\d+", line.attrib["d"])]
        assert all(0 <= x <= width for x in numbers[::2])
        assert all(0 <= y <= height for y in numbers[1::2])
        assert head.attrib["class"] == "head"
        (words,) = [text for text in picture.iter("text") if text.text == label]
        assert 0 <= float(words.attrib["y"]) <= height
    boxes = [float(box.attrib["y"]) for box in drawn(graph(arrows=backwards)).findall("rect")]
    hanging = [
        float(n) for n in re.findall(r"-?\d+\.\d+", drawn(graph(arrows=backwards)).findall("path")[0].attrib["d"])
    ]
    assert max(hanging[1::2]) > boxes[2] + 2 * HIGH
    boxes = [float(box.attrib["y"]) for box in drawn(graph(arrows=loop)).findall("rect")]
    standing = [float(n) for n in re.findall(r"-?\d+\.\d+", drawn(graph(arrows=loop)).findall("path")[0].attrib["d"])]
    assert min(standing[1::2]) < boxes[1]
