"""Symbolic computation graphs: built first, differentiated as graphs, evaluated later (book sec. 2.1).

x = Symbol("x")
y = x * sin(x)
(derivative,) = differentiate(y, [x])          # symbol-to-symbol: again a graph
(second,) = differentiate(derivative, [x])
Program([x], [y, derivative, second])(np.array(2.0))
"""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from parnassus.autodiff.derivative_rules import Array, ArrayLike, Operation, Shape, Tracer, Value
from parnassus.autodiff.operations import Arithmetic
from parnassus.autodiff.reverse_mode import accumulate_gradients, topological_order


class Symbol(Arithmetic):
    """A named placeholder for an array of this shape, or the result of an operation.

    >>> x = Symbol("x", shape=(3,))
    >>> (x + 1).shape
    (3,)
    """

    __slots__ = ("_shape", "arguments", "constant", "name", "operation")
    level = 1

    def __init__(
        self,
        name: str,
        shape: Shape = (),
        *,
        operation: Operation | None = None,
        arguments: tuple[Value, ...] = (),
        constant: Array | None = None,
    ) -> None:
        self.name = name
        self.operation = operation
        self.arguments = arguments
        self.constant = constant
        self._shape = shape

    @property
    def shape(self) -> Shape:
        return self._shape

    def trace(self, operation: Operation, arguments: tuple[Value, ...]) -> "Symbol":
        """Record the operation; only the shape is computed."""
        with np.errstate(all="ignore"):
            shape = np.shape(operation.value(*map(_placeholder, arguments)))
        return Symbol(operation.name, shape, operation=operation, arguments=arguments)

    def __repr__(self) -> str:
        inside = ", ".join(a.name if isinstance(a, Symbol) else repr(a) for a in self.arguments)
        return f"{self.name}({inside})" if self.operation is not None else self.name


def constant(value: ArrayLike, name: str = "") -> Symbol:
    """A symbol with a fixed value."""
    array = np.asarray(value, dtype=np.float64)
    return Symbol(name or f"{value}", array.shape, constant=array)


def differentiate(output: Symbol, inputs: Sequence[Symbol], seed: Symbol | None = None) -> list[Symbol]:
    """Graphs of ∇_x (seed · output) for each input x (book eq. 2.2). A scalar output needs no seed."""
    if seed is None and output.shape != ():
        raise ValueError(
            f"a non-scalar output needs a seed of its shape, for Jᵀ seed; got no seed for shape {output.shape}"
        )
    start = constant(1.0, "1") if seed is None else seed
    if start.shape != output.shape:
        raise ValueError(f"the seed must have the shape of the output; got {start.shape} for {output.shape}")
    found = accumulate_gradients(output, inputs, start, lambda node: cast("Value", node))
    return [
        constant(np.zeros(x.shape), "0") if g is None else cast("Symbol", g) for x, g in zip(inputs, found, strict=True)
    ]


def forward_pass(outputs: Sequence[Symbol], values: Mapping[Symbol, ArrayLike]) -> dict[Symbol, Array]:
    """The value of every node that the outputs depend on, as stored for the backward pass (Zhao sec. 5)."""
    found: dict[Symbol, Array] = {}
    for node in topological_order(*outputs):
        if node in values:
            found[node] = _as_array(node, values[node])
        elif node.operation is not None:
            x = (found[each] if isinstance(each, Symbol) else each for each in node.arguments)
            found[node] = np.asarray(node.operation.value(*x))
        elif node.constant is not None:
            found[node] = node.constant
        else:
            raise ValueError(f"the graph needs a value for {node.name}; got values for {_names(list(values))}")
    return found


class Program:
    """A graph compiled into a function of arrays: nodes are ordered once, calls only compute.

    >>> x = Symbol("x")
    >>> y = x * x + 1
    >>> float(Program([x], [y])(3.0)[0])
    10.0
    """

    def __init__(self, inputs: Sequence[Symbol], outputs: Sequence[Symbol]) -> None:
        inner = [node for node in topological_order(*outputs) if node not in inputs]
        missing = [node for node in inner if node.operation is None and node.constant is None]
        if missing:
            raise ValueError(f"the graph needs values for {_names(missing)}; its inputs are {_names(inputs)}")
        self.inputs = tuple(inputs)
        self._slots: list[Value] = []  # constants, and a slot for every other value
        slot: dict[Symbol, int] = {}
        self._instructions: list[tuple[int, Callable[..., Array], list[int]]] = []
        for node in [*inputs, *inner]:
            arguments = [slot[x] if isinstance(x, Symbol) else self._add_slot(x) for x in node.arguments]
            slot[node] = self._add_slot(0.0 if node.constant is None else node.constant)
            if node.operation is not None and node not in inputs:
                self._instructions.append((slot[node], node.operation.value, arguments))
        self._inputs = [slot[node] for node in inputs]
        self._outputs = [slot[node] for node in outputs]

    def __call__(self, *values: ArrayLike) -> list[Array]:
        """The outputs for these values of the inputs, in the order of construction."""
        if len(values) != len(self.inputs):
            raise ValueError(f"the program takes values for {_names(self.inputs)}; got {len(values)} values")
        slots = list(self._slots)
        for slot, node, value in zip(self._inputs, self.inputs, values, strict=True):
            slots[slot] = _as_array(node, value)
        for slot, compute, arguments in self._instructions:
            slots[slot] = compute(*[slots[each] for each in arguments])
        return [np.asarray(slots[slot]) for slot in self._outputs]

    def _add_slot(self, value: Value) -> int:
        self._slots.append(value)
        return len(self._slots) - 1


def _as_array(node: Symbol, value: ArrayLike) -> Array:
    array = np.asarray(value)
    if array.shape != node.shape:
        raise ValueError(f"{node.name} has shape {node.shape}; got a value of shape {array.shape}")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _placeholder(x: Value) -> ArrayLike:
    """An array of the right shape, from which the shape of a result is inferred."""
    if isinstance(x, Symbol):
        return np.ones(x.shape)
    if isinstance(x, Tracer):
        raise ValueError(f"a graph needs symbols or arrays; got a {type(x).__name__}")
    return x


def _names(symbols: Sequence[Symbol]) -> str:
    return ", ".join(symbol.name for symbol in symbols) or "none"
