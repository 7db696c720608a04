"""The multivariate chain rule as a sum over paths (book sec. 2.1).

    ∂y/∂x = Σ over paths x → … → y of Π over the edges of the path of their local derivatives     (book eq. 2.3)

The number of paths grows exponentially with the number of forks; reverse accumulation computes the same sum and visits
each edge once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import cast

import numpy as np

from parnassus.autodiff.derivative_rules import Array
from parnassus.autodiff.reverse_mode import topological_order
from parnassus.autodiff.tape import Variable


@dataclass(frozen=True)
class Edge:
    """An argument `start` of a node `end`, with the local derivative ∂end/∂start.

    >>> x = Variable(3.0)
    >>> Edge(x, x * x, derivative=6.0).derivative
    6.0
    """

    start: Variable
    end: Variable
    derivative: float


def incoming_edges(node: Variable) -> list[Edge]:
    """One edge for each argument that is a variable; x·x has two from x."""
    if node.shape != ():
        raise ValueError(f"paths are defined for graphs of scalars; got a node of shape {node.shape}")
    if node.operation is None:
        return []
    x = [each.value if isinstance(each, Variable) else each for each in node.arguments]
    rules = zip(node.operation.vjps, node.arguments, strict=False)
    one = np.ones(())
    return [
        Edge(each, node, float(cast("Array", rule(one, node.value, *x))))
        for rule, each in rules
        if isinstance(each, Variable)
    ]


def all_paths(start: Variable, output: Variable) -> Iterator[tuple[Edge, ...]]:
    """Every path from `start` to `output`, as its edges in that order."""
    if output is start:
        yield ()
        return
    for edge in incoming_edges(output):
        for path in all_paths(start, edge.start):
            yield (*path, edge)


def derivative_by_paths(start: Variable, output: Variable) -> float:
    """Σ over paths of Π of local derivatives (book eq. 2.3)."""
    return sum((prod((edge.derivative for edge in path), start=1.0) for path in all_paths(start, output)), start=0.0)


def derivative_by_accumulation(start: Variable, output: Variable) -> float:
    """The sum over paths by reverse accumulation, visiting each edge once (book sec. 2.1)."""
    gradient = {output: 1.0}
    for node in reversed(topological_order(output)):
        for edge in incoming_edges(node):
            gradient[edge.start] = gradient.get(edge.start, 0.0) + gradient[node] * edge.derivative
    return gradient.get(start, 0.0)


def count_edges(output: Variable) -> int:
    """The number of edges of the graph of `output`: the cost of a backward pass."""
    return sum(len(incoming_edges(node)) for node in topological_order(output))
