"""Backpropagation spelled out: multiply along a path, add over all paths (book sec. 2.1).

    ∂y/∂x = Σ over paths x → … → y of Π over the edges of the path of their local slopes     (book eq. 2.3)

Listing every path shows what the backward sweep computes, at a cost that doubles with every fork; the sweep adds where
paths meet and crosses each edge once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import cast

import numpy as np

from parnassus.autodiff.operation import Array
from parnassus.autodiff.sweeps import in_order
from parnassus.autodiff.tape import Variable


@dataclass(frozen=True)
class Edge:
    """A use of one node by another, and the local slope ∂end/∂start there."""

    start: Variable
    end: Variable
    slope: float


def edges_into(node: Variable) -> list[Edge]:
    """One edge for each argument that is a variable; x·x has two from x."""
    if node.shape != ():
        raise ValueError(f"paths are for graphs of single numbers; got a node of shape {node.shape}")
    if node.operation is None:
        return []
    x = [each.value if isinstance(each, Variable) else each for each in node.arguments]
    rules = zip(node.operation.pulls, node.arguments, strict=False)
    one = np.ones(())
    return [
        Edge(each, node, float(cast("Array", rule(one, node.value, *x))))
        for rule, each in rules
        if isinstance(each, Variable)
    ]


def all_paths(start: Variable, output: Variable) -> Iterator[tuple[Edge, ...]]:
    """Every way from `start` to `output`, as its edges in that order."""
    if output is start:
        yield ()
        return
    for edge in edges_into(output):
        for way in all_paths(start, edge.start):
            yield (*way, edge)


def slope_by_paths(start: Variable, output: Variable) -> float:
    """Σ over paths of Π of local slopes (book eq. 2.3)."""
    return sum((prod((edge.slope for edge in way), start=1.0) for way in all_paths(start, output)), start=0.0)


def slope_by_edges(start: Variable, output: Variable) -> float:
    """The same sum by reverse accumulation: each edge is crossed once (book sec. 2.1)."""
    reaching = {output: 1.0}
    for node in reversed(in_order(output)):
        for edge in edges_into(node):
            reaching[edge.start] = reaching.get(edge.start, 0.0) + reaching[node] * edge.slope
    return reaching.get(start, 0.0)


def edge_count(output: Variable) -> int:
    """How many edges the graph behind `output` has: the cost of a sweep."""
    return sum(len(edges_into(node)) for node in in_order(output))
