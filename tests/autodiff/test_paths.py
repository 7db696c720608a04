"""Paths through small graphs that can be counted by hand."""

import numpy as np
import pytest

from parnassus.autodiff import (
    Variable,
    all_paths,
    edge_count,
    edges_into,
    pull_back,
    sin,
    slope_by_edges,
    slope_by_paths,
)


def test_a_square_has_two_edges_from_one_node() -> None:
    x = Variable(3.0)
    y = x * x
    assert [edge.slope for edge in edges_into(y)] == [3.0, 3.0]
    assert len(list(all_paths(x, y))) == 2
    assert slope_by_paths(x, y) == slope_by_edges(x, y) == 6.0


def test_a_path_is_its_edges_from_start_to_end() -> None:
    x, w = Variable(2.0), Variable(5.0)
    z = w * x
    y = sin(z) + x
    ways = {tuple(edge.end for edge in way) for way in all_paths(x, y)}
    assert ways == {(y,), (z, z_sin(y), y)}
    (only,) = all_paths(w, y)
    assert [edge.slope for edge in only] == [2.0, pytest.approx(np.cos(10.0)), 1.0]


def z_sin(y: Variable) -> Variable:
    first = y.arguments[0]
    assert isinstance(first, Variable)
    return first


def test_constants_have_no_edges() -> None:
    x = Variable(2.0)
    y = 3.0 * x - 1.0
    assert edge_count(y) == 2
    assert slope_by_paths(x, y) == 3.0


def test_no_path_no_slope() -> None:
    x, other = Variable(1.0), Variable(2.0)
    assert slope_by_paths(other, x * 2.0) == slope_by_edges(other, x * 2.0) == 0.0


def test_random_graphs_have_the_slope_of_the_sweep() -> None:
    source = np.random.default_rng(0)
    for _ in range(20):
        x = Variable(source.normal())
        pool = [x, Variable(source.normal())]
        for _ in range(8):
            a, b = (pool[source.integers(len(pool))] for _ in range(2))
            pool.append([a * b, a + b, sin(a), a - b][source.integers(4)])
        expected = float(pull_back(pool[-1], [x])[0])
        assert slope_by_paths(x, pool[-1]) == pytest.approx(expected, rel=1e-10, abs=1e-12)
        assert slope_by_edges(x, pool[-1]) == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_arrays_get_a_sentence() -> None:
    x = Variable(np.ones(2))
    with pytest.raises(ValueError, match=r"paths are for graphs of single numbers; got a node of shape \(2,\)"):
        slope_by_paths(x, x * 2.0)
