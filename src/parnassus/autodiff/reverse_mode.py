"""Reverse accumulation over a recorded computation (book sec. 2.1).

A record consists of nodes, each with its operation and arguments; the same code serves nodes with values (the tape) and
without (the graph).
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, cast, runtime_checkable

from parnassus.autodiff.derivative_rules import Operation, Value
from parnassus.autodiff.operations import add


@runtime_checkable
class Node(Protocol):
    """A node of a record; leaves have no operation and no arguments."""

    @property
    def operation(self) -> Operation | None: ...

    @property
    def arguments(self) -> tuple[Value, ...]: ...


NodeT = TypeVar("NodeT", bound=Node)


def argument_nodes(node: NodeT) -> list[NodeT]:
    """The arguments of a node that are nodes themselves, without constants."""
    kind = type(node)
    return [cast("NodeT", argument) for argument in node.arguments if isinstance(argument, kind)]


def topological_order(*outputs: NodeT) -> list[NodeT]:
    """All nodes that the outputs depend on, each after its arguments; iterative, so the depth is not limited."""
    order: dict[NodeT, None] = {}
    stack: list[tuple[NodeT, bool]] = [(output, False) for output in reversed(outputs)]
    while stack:
        node, done = stack.pop()
        if node in order:
            continue
        if done or not node.arguments:
            order[node] = None
            continue
        stack.append((node, True))
        stack.extend((argument, False) for argument in reversed(argument_nodes(node)))
    return list(order)


def accumulate_gradients(
    output: NodeT, inputs: Sequence[NodeT], seed: Value, read: Callable[[object], Value]
) -> list[Value | None]:
    """Jᵀ seed for each input, or None where the output does not depend on it.

        ḡ(output) = seed,   ḡ(x) = Σ over uses y = f(…, x, …) of (∂y/∂x)ᵀ ḡ(y)     (book eq. 2.2)

    `read` maps a node to what the rules receive: its value, or the node itself to differentiate again. Each edge on a
    path from an input to the output is visited once, and no other.
    """
    order = topological_order(output)
    requested = set(inputs)
    relevant = set(requested)  # nodes through which the output depends on an input
    for node in order:
        if not relevant.isdisjoint(argument_nodes(node)):
            relevant.add(node)
    kind = type(output)
    gradient: dict[object, Value] = {output: seed}
    for node in reversed(order):
        if node.operation is None or node not in relevant or node not in gradient:
            continue
        output_gradient = gradient[node] if node in requested else gradient.pop(node)
        y, x = read(node), tuple(map(read, node.arguments))
        for rule, argument in zip(node.operation.vjps, node.arguments, strict=False):
            if isinstance(argument, kind) and argument in relevant:
                term = rule(output_gradient, y, *x)
                gradient[argument] = add(gradient[argument], term) if argument in gradient else term
    return [gradient.get(each) for each in inputs]
