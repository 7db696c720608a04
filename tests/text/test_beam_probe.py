"""The probe of beam search and its tree of prefixes."""

import pytest

from parnassus.text.beam_search import BeamNode
from parnassus.text.probes.beam_search import SELECTIONS, beam_search_tree, tree_graph
from parnassus.widgets import Graph, Numbers, evaluate_probe, read_controls


def evaluate(**values: float) -> tuple[Graph, Numbers]:
    graph, numbers = evaluate_probe(beam_search_tree, None, read_controls(beam_search_tree, None), values)
    assert isinstance(graph, Graph)
    assert isinstance(numbers, Numbers)
    return graph, numbers


def test_width_one_is_a_single_marked_path() -> None:
    graph, numbers = evaluate(width=1, length=6)
    assert [(edge.start, edge.end) for edge in graph.edges] == [(position, position + 1) for position in range(6)]
    assert all(node.marked and node.y == graph.nodes[0].y for node in graph.nodes)
    assert len(numbers.values) == 1


@pytest.mark.parametrize("selection", range(len(SELECTIONS)))
def test_prefixes_have_distinct_positions(selection: int) -> None:
    graph, numbers = evaluate(width=5, length=6, selection=selection)
    positions = [(node.x, node.y) for node in graph.nodes]
    assert len(set(positions)) == len(positions)
    assert sorted(edge.end for edge in graph.edges) == list(range(1, len(positions)))
    assert all(graph.nodes[edge.start].x + 1 == graph.nodes[edge.end].x for edge in graph.edges)
    assert len(numbers.values) >= 5


def test_length_penalty_favours_longer_sentences() -> None:
    lengths = [
        len(next(iter(evaluate(width=6, length=8, penalty=penalty)[1].values)).split()) for penalty in (0.0, 2.0)
    ]
    assert lengths[0] < lengths[1]


def test_tree_depends_on_the_seed() -> None:
    first, repeated, other = (evaluate(selection=1, seed=seed)[0].nodes for seed in (0, 0, 1))
    assert first == repeated != other


def test_parent_is_placed_at_the_mean_of_its_children() -> None:
    nodes = [BeamNode(0, None, 7, -1.0, -1.0, False), *(BeamNode(1, 0, token, -2.0, -2.0, True) for token in (1, 2))]
    graph = tree_graph("so", nodes, str, (7, 2))
    assert [node.label for node in graph.nodes] == ["so", "7", "1", "2"]
    assert [node.marked for node in graph.nodes] == [True, True, False, True]
    assert graph.nodes[1].y == (graph.nodes[2].y + graph.nodes[3].y) / 2
    assert graph.edges[1].label == "0.37"
