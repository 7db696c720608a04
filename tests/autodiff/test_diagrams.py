"""Where nodes stand: arguments left of results, rows apart, every edge there once."""

import numpy as np
import pytest

from parnassus.autodiff import Diagram, Symbol, Variable, diagram, sin, tanh, two_neurons


def drawn(output: Variable, names: dict[Variable, str] | None = None) -> Diagram:
    return diagram(
        output, names=names or {}, value=lambda node: f"{float(node.value):g}", edge=lambda _, place: str(place)
    )


def test_the_toy_network_stands_in_four_columns() -> None:
    net = two_neurons(Variable(1.0), Variable(2.0), Variable(3.0))
    picture = drawn(net.y, net.names)
    columns = {spot.label.split(" ")[0]: spot.across for spot in picture.spots}
    assert columns == {"x": 0, "w₁": 0, "w₂": 0, "z₁": 1, "z₂": 1, "h₁": 2, "h₂": 2, "y": 3}
    assert len(picture.links) == 8
    assert {spot.label for spot in picture.spots if spot.is_input} == {"x", "w₁", "w₂"}
    up = {spot.label[0:2]: spot.up for spot in picture.spots}
    assert up["x"] == pytest.approx(up["y "])  # what is shared stands between those who share it


def test_every_link_leads_to_the_right_through_every_column_between() -> None:
    x, b = Variable(0.5), Variable(1.0)
    y = tanh(sin(tanh(x))) + x * b
    picture = drawn(y)
    for link in picture.links:
        stops = [
            picture.spots[link.start].across,
            *(across for across, _ in link.through),
            picture.spots[link.end].across,
        ]
        assert np.diff(stops).tolist() == [1.0] * (len(stops) - 1)


def test_nothing_in_a_column_is_nearer_than_a_row() -> None:
    x, w = Variable(0.5), Variable(1.0)
    terms = [sin(x * w), tanh(x), x * x, w * w, sin(w)]
    y = terms[0]
    for term in terms[1:]:
        y = y + term
    picture = drawn(y)
    places = [(spot.across, spot.up) for spot in picture.spots] + [
        stop for link in picture.links for stop in link.through
    ]
    for column in {across for across, _ in places}:
        heights = sorted(up for across, up in places if across == column)
        assert all(gap >= 1 - 1e-9 for gap in np.diff(heights))


def test_an_input_stands_just_left_of_its_first_use() -> None:
    x, late = Variable(0.5), Variable(1.0)
    picture = drawn(sin(sin(x)) * late, {late: "late"})
    (spot,) = (spot for spot in picture.spots if spot.label == "late")
    assert spot.across == 2


def test_a_node_used_twice_gets_one_arrow_with_both_words() -> None:
    x = Variable(3.0)
    (link,) = drawn(x * x).links
    assert link.label == "0 + 1"


def test_labels_tell_the_operation_and_its_number() -> None:
    x = Variable(3.0)
    assert [spot.label for spot in drawn((x * 2.0) ** 2, {x: "x"}).spots] == ["x", "× 2", "x²"]
    s = Symbol("s")
    picture = diagram(s + 1.5, names={}, value=lambda _: "", edge=lambda _node, _place: "")
    assert [spot.label for spot in picture.spots] == ["s", "+ 1.5"]
