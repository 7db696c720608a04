"""Where the nodes of a graph stand in its picture: inputs on the left, the output on the right (book fig. 2.1).

Columns by the longest way from the inputs; within a column the order that keeps neighbours level, found by letting each
node move to the middle of its neighbours. An edge over several columns gets a place of its own in each it passes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from parnassus.autodiff.sweeps import Place, in_order, nodes_before

SWEEPS = 12


@dataclass(frozen=True)
class Spot:
    """A node in the picture: what it is, what it holds, where it stands."""

    label: str
    value: str
    across: float
    up: float
    is_input: bool


@dataclass(frozen=True)
class Link:
    """An edge between two spots, by their numbers, with the places it passes on the way."""

    start: int
    end: int
    label: str
    through: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Diagram:
    """A graph ready to be drawn; one column and one row are a unit apart."""

    spots: tuple[Spot, ...]
    links: tuple[Link, ...]


def diagram(
    output: Place,
    *,
    names: Mapping[Place, str],
    value: Callable[[Place], str],
    edge: Callable[[Place, int], str],
) -> Diagram:
    """The graph behind `output`: `names` where there are any, a `value` at each node, words on each `edge(node, i)`."""
    order = in_order(output)
    column = _columns(order)
    number = {node: index for index, node in enumerate(order)}
    words: dict[tuple[Place, Place], str] = {}  # a node used twice by another gets one arrow, with both words
    for node in order:
        for place, argument in enumerate(node.arguments):
            if isinstance(argument, type(node)):
                use = (argument, node)
                words[use] = " + ".join(filter(None, [words.get(use), edge(node, place)]))
    layers: list[list[int]] = [[] for _ in range(column[output] + 1)]
    for node in order:
        layers[column[node]].append(number[node])
    chains: list[list[int]] = []  # both ends of an arrow, and its stopovers, which are numbered after the nodes
    count = len(order)
    for start, end in words:
        between = range(column[start] + 1, column[end])
        stops = range(count, count + len(between))
        count += len(between)
        for stop, layer in zip(stops, between, strict=True):
            layers[layer].append(stop)
        chains.append([number[start], *stops, number[end]])
    height = _heights(layers, chains, count)
    across = {stop: float(index) for index, layer in enumerate(layers) for stop in layer}
    spots = tuple(
        Spot(names.get(node) or _label(node), value(node), across[index], height[index], not node.arguments)
        for index, node in enumerate(order)
    )
    links = tuple(
        Link(chain[0], chain[-1], text, tuple((across[stop], height[stop]) for stop in chain[1:-1]))
        for chain, text in zip(chains, words.values(), strict=True)
    )
    return Diagram(spots, links)


def _columns(order: list[Place]) -> dict[Place, int]:
    """Each node right of its arguments; inputs just left of their first use."""
    column: dict[Place, int] = {}
    for node in order:
        column[node] = 1 + max((column[each] for each in nodes_before(node)), default=-1)
    first_use: dict[Place, int] = {}
    for node in order:
        for each in nodes_before(node):
            first_use[each] = min(first_use.get(each, column[node]), column[node])
    return {node: column[node] if node.arguments else first_use.get(node, 1) - 1 for node in order}


def _heights(layers: list[list[int]], chains: list[list[int]], count: int) -> list[float]:
    """A height for each number: barycentre sweeps settle the order, then each column spreads around its middle."""
    beside: list[list[int]] = [[] for _ in range(count)]
    for chain in chains:
        for left, right in pairwise(chain):
            beside[left].append(right)
            beside[right].append(left)
    height = [0.0] * count
    for layer in layers:
        _spread_out(layer, height)
    for _ in range(SWEEPS):
        for layer in [*layers, *reversed(layers)]:
            wish = {stop: sum(height[each] for each in beside[stop]) / max(1, len(beside[stop])) for stop in layer}
            layer.sort(key=lambda stop: -wish[stop])
            for stop in layer:
                height[stop] = wish[stop]
            _spread_out(layer, height)
    return height


def _spread_out(layer: list[int], height: list[float]) -> None:
    """Heights in the order of the layer, from above, at least a row apart, with their middle where it was."""
    middle = sum(height[stop] for stop in layer) / len(layer)
    for above, stop in pairwise(layer):
        height[stop] = min(height[stop], height[above] - 1.0)
    shift = middle - sum(height[stop] for stop in layer) / len(layer)
    for stop in layer:
        height[stop] += shift


def _label(node: Place) -> str:
    """The operation, with a number that it takes beside its variables: `× 2`."""
    if node.operation is None:
        return str(getattr(node, "name", ""))  # symbols have a name, variables only a value
    fixed = [each for each in node.arguments if isinstance(each, int | float)]
    return f"{node.operation.name} {fixed[0]:.3g}" if fixed else node.operation.name
