"""Paths through small graphs."""

import numpy as np
import pytest

from parnassus.autodiff import (
    Variable,
    all_paths,
    count_edges,
    derivative_by_accumulation,
    derivative_by_paths,
    gradients,
    incoming_edges,
    sin,
)


def test_square_has_two_edges_from_one_node() -> None:
    x = Variable(3.0)
    y = x * x
    assert [edge.derivative for edge in incoming_edges(y)] == [3.0, 3.0]
    assert len(list(all_paths(x, y))) == 2
    assert derivative_by_paths(x, y) == derivative_by_accumulation(x, y) == 6.0


def test_paths_list_their_edges_from_start_to_end() -> None:
    x, w = Variable(2.0), Variable(5.0)
    z = w * x
    y = sin(z) + x
    paths = {tuple(edge.end for edge in path) for path in all_paths(x, y)}
    assert paths == {(y,), (z, first_argument(y), y)}
    (path,) = all_paths(w, y)
    assert [edge.derivative for edge in path] == [2.0, pytest.approx(np.cos(10.0)), 1.0]


def first_argument(y: Variable) -> Variable:
    first = y.arguments[0]
    assert isinstance(first, Variable)
    return first


def test_constants_have_no_edges() -> None:
    x = Variable(2.0)
    y = 3.0 * x - 1.0
    assert count_edges(y) == 2
    assert derivative_by_paths(x, y) == 3.0


def test_derivative_is_zero_without_a_path() -> None:
    x, other = Variable(1.0), Variable(2.0)
    assert derivative_by_paths(other, x * 2.0) == derivative_by_accumulation(other, x * 2.0) == 0.0


def test_derivatives_of_random_graphs_match_reverse_mode() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = Variable(rng.normal())
        nodes = [x, Variable(rng.normal())]
        for _ in range(8):
            a, b = (nodes[rng.integers(len(nodes))] for _ in range(2))
            nodes.append([a * b, a + b, sin(a), a - b][rng.integers(4)])
        expected = float(gradients(nodes[-1], [x])[0])
        assert derivative_by_paths(x, nodes[-1]) == pytest.approx(expected, rel=1e-10, abs=1e-12)
        assert derivative_by_accumulation(x, nodes[-1]) == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_arrays_raise_value_error() -> None:
    x = Variable(np.ones(2))
    with pytest.raises(ValueError, match=r"paths are defined for graphs of scalars; got a node of shape \(2,\)"):
        derivative_by_paths(x, x * 2.0)
