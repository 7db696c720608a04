"""Layered layout of a computation graph: inputs on the left, the output on the right (book fig. 2.1).

A node's column is the length of the longest path from the inputs; the order within a column is found by barycentre
sweeps. An edge that spans several columns gets a waypoint in each column between.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from parnassus.autodiff.reverse_mode import NodeT, argument_nodes, topological_order

SWEEPS = 12


@dataclass(frozen=True)
class LayoutNode:
    """A node with its label, the text of its value and its position.

    >>> LayoutNode("x", "2", 0.0, 0.0, is_input=True).label
    'x'
    """

    label: str
    value: str
    x: float
    y: float
    is_input: bool


@dataclass(frozen=True)
class LayoutEdge:
    """An edge between two nodes, by index, with its waypoints.

    >>> LayoutEdge(start=0, end=1, label="2").end
    1
    """

    start: int
    end: int
    label: str
    waypoints: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class GraphLayout:
    """A graph with positions; neighbouring columns and rows are one unit apart.

    >>> node = LayoutNode("x", "2", 0.0, 0.0, is_input=True)
    >>> len(GraphLayout((node,), ()).nodes)
    1
    """

    nodes: tuple[LayoutNode, ...]
    edges: tuple[LayoutEdge, ...]


def layout_graph(
    output: NodeT,
    *,
    names: Mapping[NodeT, str],
    value: Callable[[NodeT], str],
    edge: Callable[[NodeT, int], str],
) -> GraphLayout:
    """Lay out the graph of `output`, with `names` of nodes, texts of values and labels of edges `edge(node, i)`."""
    order = topological_order(output)
    column = _columns(order)
    number = {node: index for index, node in enumerate(order)}
    labels: dict[tuple[NodeT, NodeT], str] = {}  # a node used twice by another has one arrow with both labels
    for node in order:
        for position, argument in enumerate(node.arguments):
            if isinstance(argument, type(node)):
                use = (argument, node)
                labels[use] = " + ".join(filter(None, [labels.get(use), edge(node, position)]))
    layers: list[list[int]] = [[] for _ in range(column[output] + 1)]
    for node in order:
        layers[column[node]].append(number[node])
    chains: list[list[int]] = []  # start, waypoints and end of each edge; waypoints are numbered after the nodes
    count = len(order)
    for start, end in labels:
        between = range(column[start] + 1, column[end])
        waypoints = range(count, count + len(between))
        count += len(between)
        for waypoint, layer in zip(waypoints, between, strict=True):
            layers[layer].append(waypoint)
        chains.append([number[start], *waypoints, number[end]])
    y = _heights(layers, chains, count)
    x = {index: float(position) for position, layer in enumerate(layers) for index in layer}
    nodes = tuple(
        LayoutNode(names.get(node) or _label(node), value(node), x[index], y[index], not node.arguments)
        for index, node in enumerate(order)
    )
    edges = tuple(
        LayoutEdge(chain[0], chain[-1], text, tuple((x[index], y[index]) for index in chain[1:-1]))
        for chain, text in zip(chains, labels.values(), strict=True)
    )
    return GraphLayout(nodes, edges)


def _columns(order: list[NodeT]) -> dict[NodeT, int]:
    """Each node to the right of its arguments; inputs one column left of their first use."""
    column: dict[NodeT, int] = {}
    for node in order:
        column[node] = 1 + max((column[each] for each in argument_nodes(node)), default=-1)
    first_use: dict[NodeT, int] = {}
    for node in order:
        for each in argument_nodes(node):
            first_use[each] = min(first_use.get(each, column[node]), column[node])
    return {node: column[node] if node.arguments else first_use.get(node, 1) - 1 for node in order}


def _heights(layers: list[list[int]], chains: list[list[int]], count: int) -> list[float]:
    """The height of each node and waypoint: barycentre sweeps, with a minimum distance within each column."""
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for chain in chains:
        for left, right in pairwise(chain):
            neighbours[left].append(right)
            neighbours[right].append(left)
    height = [0.0] * count
    for layer in layers:
        _separate(layer, height)
    for _ in range(SWEEPS):
        for layer in [*layers, *reversed(layers)]:
            barycentre = {
                index: sum(height[each] for each in neighbours[index]) / max(1, len(neighbours[index]))
                for index in layer
            }
            layer.sort(key=lambda index: -barycentre[index])
            for index in layer:
                height[index] = barycentre[index]
            _separate(layer, height)
    return height


def _separate(layer: list[int], height: list[float]) -> None:
    """Move the nodes of a column, in their order from the top, at least one unit apart, keeping their mean height."""
    mean = sum(height[index] for index in layer) / len(layer)
    for above, index in pairwise(layer):
        height[index] = min(height[index], height[above] - 1.0)
    shift = mean - sum(height[index] for index in layer) / len(layer)
    for index in layer:
        height[index] += shift


def _label(node: NodeT) -> str:
    """The operation, with its constant argument if it has one: `× 2`."""
    if node.operation is None:
        return str(getattr(node, "name", ""))  # symbols have a name, variables only a value
    constants = [each for each in node.arguments if isinstance(each, int | float)]
    return f"{node.operation.name} {constants[0]:.3g}" if constants else node.operation.name
