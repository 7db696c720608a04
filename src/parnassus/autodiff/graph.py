"""The graph: an expression is built first, differentiated into another, and filled with numbers later (book sec. 2.1).

x = Symbol("x")
y = x * sin(x)
(slope,) = differentiate(y, [x])               # symbol-to-symbol: again a graph
(curvature,) = differentiate(slope, [x])
Program([x], [y, slope, curvature])(np.array(2.0))
"""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from parnassus.autodiff.operation import Array, Known, Operation, Shape, Traced, Value
from parnassus.autodiff.operations import Arithmetic
from parnassus.autodiff.sweeps import in_order, sweep_back


class Symbol(Arithmetic):
    """A named place for a number or an array of this shape; or, made by an operation, for its result."""

    __slots__ = ("_shape", "arguments", "constant", "name", "operation")
    rank = 1

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

    def carry(self, operation: Operation, arguments: tuple[Value, ...]) -> "Symbol":
        """Remember, and compute nothing but the shape."""
        with np.errstate(all="ignore"):
            shape = np.shape(operation.value(*map(_stand_in, arguments)))
        return Symbol(operation.name, shape, operation=operation, arguments=arguments)

    def __repr__(self) -> str:
        inside = ", ".join(a.name if isinstance(a, Symbol) else repr(a) for a in self.arguments)
        return f"{self.name}({inside})" if self.operation is not None else self.name


def constant(value: Known, name: str = "") -> Symbol:
    """A symbol whose number is known beforehand."""
    array = np.asarray(value, dtype=np.float64)
    return Symbol(name or f"{value}", array.shape, constant=array)


def differentiate(output: Symbol, inputs: Sequence[Symbol], seed: Symbol | None = None) -> list[Symbol]:
    """Graphs of ∇_x (seed · output) for each input x (book eq. 2.2). A scalar output needs no seed."""
    if seed is None and output.shape != ():
        raise ValueError(
            f"an output of shape {output.shape} has no gradient, only a Jacobian; give a seed of that shape for Jᵀ seed"
        )
    start = constant(1.0, "1") if seed is None else seed
    if start.shape != output.shape:
        raise ValueError(f"the seed must have the shape of the output; got {start.shape} for {output.shape}")
    found = sweep_back(output, inputs, start, lambda node: cast("Value", node))
    return [
        constant(np.zeros(x.shape), "0") if g is None else cast("Symbol", g) for x, g in zip(inputs, found, strict=True)
    ]


def forward_pass(outputs: Sequence[Symbol], values: Mapping[Symbol, Known]) -> dict[Symbol, Array]:
    """The value of every node on the way to the outputs, kept for whoever comes back this way (Zhao sec. 5)."""
    found: dict[Symbol, Array] = {}
    for node in in_order(*outputs):
        if node in values:
            found[node] = _checked(node, values[node])
        elif node.operation is not None:
            x = (found[each] if isinstance(each, Symbol) else each for each in node.arguments)
            found[node] = np.asarray(node.operation.value(*x))
        elif node.constant is not None:
            found[node] = node.constant
        else:
            raise ValueError(f"the graph needs a value for {node.name}; got values for {_names(list(values))}")
    return found


class Program:
    """A graph as a function of arrays: its order is settled once, and then each call only computes."""

    def __init__(self, inputs: Sequence[Symbol], outputs: Sequence[Symbol]) -> None:
        inner = [node for node in in_order(*outputs) if node not in inputs]
        missing = [node for node in inner if node.operation is None and node.constant is None]
        if missing:
            raise ValueError(f"the graph needs values for {_names(missing)}; its inputs are {_names(inputs)}")
        self.inputs = tuple(inputs)
        self._held: list[Value] = []  # constants in their places, and room for everything else
        place: dict[Symbol, int] = {}
        self._instructions: list[tuple[int, Callable[..., Array], list[int]]] = []
        for node in [*inputs, *inner]:
            places = [place[x] if isinstance(x, Symbol) else self._keep(x) for x in node.arguments]
            place[node] = self._keep(0.0 if node.constant is None else node.constant)
            if node.operation is not None and node not in inputs:
                self._instructions.append((place[node], node.operation.value, places))
        self._inputs = [place[node] for node in inputs]
        self._outputs = [place[node] for node in outputs]

    def __call__(self, *values: Known) -> list[Array]:
        """The outputs for these values of the inputs, in the order both were given."""
        if len(values) != len(self.inputs):
            raise ValueError(f"the program takes values for {_names(self.inputs)}; got {len(values)} values")
        held = list(self._held)
        for place, node, value in zip(self._inputs, self.inputs, values, strict=True):
            held[place] = _checked(node, value)
        for place, compute, places in self._instructions:
            held[place] = compute(*[held[each] for each in places])
        return [np.asarray(held[place]) for place in self._outputs]

    def _keep(self, value: Value) -> int:
        self._held.append(value)
        return len(self._held) - 1


def _checked(node: Symbol, value: Known) -> Array:
    array = np.asarray(value)
    if array.shape != node.shape:
        raise ValueError(f"{node.name} has shape {node.shape}; got a value of shape {array.shape}")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _stand_in(x: Value) -> Known:
    """Any numbers of the right shape will tell the shape of the result."""
    if isinstance(x, Symbol):
        return np.ones(x.shape)
    if isinstance(x, Traced):
        raise ValueError(f"a graph holds symbols and numbers; got a {type(x).__name__}")
    return x


def _names(symbols: Sequence[Symbol]) -> str:
    return ", ".join(symbol.name for symbol in symbols) or "none"
