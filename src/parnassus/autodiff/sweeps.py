"""One backward sweep over a record of operations: reverse accumulation (book sec. 2.1).

A record is made of nodes, each with its operation and the arguments it was given; nothing here asks whether the nodes
hold numbers (the tape) or not (the graph).
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, cast, runtime_checkable

from parnassus.autodiff.operation import Operation, Value
from parnassus.autodiff.operations import add


@runtime_checkable
class Node(Protocol):
    """A place in a record; leaves have no operation and no arguments."""

    @property
    def operation(self) -> Operation | None: ...

    @property
    def arguments(self) -> tuple[Value, ...]: ...


Place = TypeVar("Place", bound=Node)


def nodes_before(node: Place) -> list[Place]:
    """The arguments of a node that are nodes themselves; the others are constants."""
    kind = type(node)
    return [cast("Place", argument) for argument in node.arguments if isinstance(argument, kind)]


def in_order(*outputs: Place) -> list[Place]:
    """All nodes that the outputs rest on, each after its arguments; a stack of our own, so depth has no limit."""
    order: dict[Place, None] = {}
    open_: list[tuple[Place, bool]] = [(output, False) for output in reversed(outputs)]
    while open_:
        node, done = open_.pop()
        if node in order:
            continue
        if done or not node.arguments:
            order[node] = None
            continue
        open_.append((node, True))
        open_.extend((earlier, False) for earlier in reversed(nodes_before(node)))
    return list(order)


def sweep_back(
    output: Place, inputs: Sequence[Place], seed: Value, read: Callable[[object], Value]
) -> list[Value | None]:
    """Jᵀ seed for each input, or None where the output does not depend on it.

        ḡ(output) = seed,   ḡ(x) = Σ over uses y = f(…, x, …) of (∂y/∂x)ᵀ ḡ(y)     (book eq. 2.2)

    `read` says what the rules see of a node: its number, or the node itself to differentiate once more. Every edge on
    the way from an input to the output is crossed once, and no other.
    """
    order = in_order(output)
    wanted = set(inputs)
    leading = set(wanted)  # nodes through which the output depends on an input
    for node in order:
        if not leading.isdisjoint(nodes_before(node)):
            leading.add(node)
    kind = type(output)
    gradient: dict[object, Value] = {output: seed}
    for node in reversed(order):
        if node.operation is None or node not in leading or node not in gradient:
            continue
        arriving = gradient[node] if node in wanted else gradient.pop(node)
        y, x = read(node), tuple(map(read, node.arguments))
        for rule, argument in zip(node.operation.pulls, node.arguments, strict=False):
            if isinstance(argument, kind) and argument in leading:
                piece = rule(arriving, y, *x)
                gradient[argument] = add(gradient[argument], piece) if argument in gradient else piece
    return [gradient.get(each) for each in inputs]
