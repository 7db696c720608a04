"""The beam as a tree: one line when greedy, no beginning twice, and answers in time."""

import time

import pytest

from parnassus.text.beam import Node
from parnassus.text.probes.beam import WAYS, beam_as_a_tree, tree_graph
from parnassus.touch import Graph, Numbers, answer, controls_of


def asked(**values: float) -> tuple[Graph, Numbers]:
    graph, told = answer(beam_as_a_tree, None, controls_of(beam_as_a_tree, None), values)
    assert isinstance(graph, Graph)
    assert isinstance(told, Numbers)
    return graph, told


def test_width_one_is_a_marked_line() -> None:
    graph, told = asked(width=1, length=6)
    assert [(arrow.start, arrow.end) for arrow in graph.arrows] == [(place, place + 1) for place in range(6)]
    assert all(box.marked and box.up == graph.boxes[0].up for box in graph.boxes)
    assert len(told.values) == 1


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_every_beginning_has_a_place_of_its_own(way: int) -> None:
    graph, told = asked(width=5, length=6, way=way)
    places = [(box.across, box.up) for box in graph.boxes]
    assert len(set(places)) == len(places)
    assert sorted(arrow.end for arrow in graph.arrows) == list(range(1, len(places)))
    assert all(graph.boxes[arrow.start].across + 1 == graph.boxes[arrow.end].across for arrow in graph.arrows)
    assert len(told.values) >= 5


def test_a_penalty_lets_longer_sentences_win() -> None:
    lengths = [len(next(iter(asked(width=6, length=8, penalty=penalty)[1].values)).split()) for penalty in (0.0, 2.0)]
    assert lengths[0] < lengths[1]


def test_another_draw_is_another_tree() -> None:
    first, again, other = (asked(way=1, draw=draw)[0].boxes for draw in (0, 0, 1))
    assert first == again != other


def test_a_parent_stands_in_the_middle_of_its_children() -> None:
    nodes = [Node(0, None, 7, -1.0, -1.0, False), *(Node(1, 0, token, -2.0, -2.0, True) for token in (1, 2))]
    graph = tree_graph("so", nodes, str, (7, 2))
    assert [box.label for box in graph.boxes] == ["so", "7", "1", "2"]
    assert [box.marked for box in graph.boxes] == [True, True, False, True]
    assert graph.boxes[1].up == (graph.boxes[2].up + graph.boxes[3].up) / 2
    assert graph.arrows[1].label == "0.37"


def test_it_answers_while_one_waits() -> None:
    asked()  # the model is made once
    began = time.perf_counter()
    asked(width=6, length=8)
    assert time.perf_counter() - began < 1.0
