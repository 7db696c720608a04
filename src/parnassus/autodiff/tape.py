"""The tape: a program runs on numbers and leaves a record, a sweep back gives numbers (book sec. 2.1).

    w = Variable(weights)
    loss = cross_entropy(relu(x @ w), labels)      # computed now; each result remembers how it came about
    (slope,) = pull_back(loss, [w])                # symbol-to-number

The record is as dynamic as the program: loops and branches leave whatever ran. `derivatives` writes the sweep itself on
the tape, so it can be swept again.
"""

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
from jaxtyping import Float

from parnassus.autodiff.operation import Array, Known, Operation, Shape, Traced, Value
from parnassus.autodiff.operations import Arithmetic, total
from parnassus.autodiff.sweeps import in_order, sweep_back


class Variable(Arithmetic):
    """A number or an array, and the operation and arguments it came from; whole numbers become float64."""

    __slots__ = ("arguments", "operation", "value")
    rank = 1

    def __init__(self, value: Known, operation: Operation | None = None, arguments: tuple[Value, ...] = ()) -> None:
        array = np.asarray(value)
        self.value: Array = array if array.dtype.kind == "f" else array.astype(np.float64)
        self.operation = operation
        self.arguments = arguments

    @property
    def shape(self) -> Shape:
        return self.value.shape

    def carry(self, operation: Operation, arguments: tuple[Value, ...]) -> "Variable":
        """Compute now, and remember."""
        return Variable(operation.value(*map(_number, arguments)), operation, arguments)

    def __repr__(self) -> str:
        return f"Variable({self.value!r})" if self.operation is None else f"{self.operation.name} → {self.value!r}"


def detached(x: Variable) -> Array:
    """The value alone, a constant for whatever follows: no gradient passes."""
    return x.value


def pull_back(output: Variable, inputs: Sequence[Variable], seed: Array | None = None) -> list[Array]:
    """∇_x (seed · output) for each input x, as numbers: Jᵀ seed (book eq. 2.2). A scalar needs no seed.

    Gradients are returned, never added to what an earlier sweep gave; there is nothing to set to zero.
    """
    found = sweep_back(output, inputs, _seed(output, seed), _number)
    return [np.zeros_like(x.value) if g is None else np.asarray(g) for x, g in zip(inputs, found, strict=True)]


def derivatives(output: Variable, inputs: Sequence[Variable], seed: Array | None = None) -> list[Variable]:
    """The same, recorded on the tape: gradients that can be differentiated again."""
    found = sweep_back(output, inputs, Variable(_seed(output, seed)), lambda node: cast("Value", node))
    return [
        Variable(np.zeros_like(x.value)) if g is None else cast("Variable", g)
        for x, g in zip(inputs, found, strict=True)
    ]


def value_and_gradients(function: Callable[..., Variable], *points: Known) -> tuple[Array, list[Array]]:
    """f(points) and its gradient at each, by one run and one sweep."""
    variables = [Variable(point) for point in points]
    output = function(*variables)
    return output.value, pull_back(output, variables)


def jacobian(function: Callable[[Variable], Variable], x: Float[np.ndarray, " n"]) -> Float[np.ndarray, "m n"]:
    """J_ij = ∂f_i/∂x_j, a sweep for each of the m outputs (book eq. 2.2)."""
    variable = Variable(x)
    output = function(variable)
    return np.stack([pull_back(output, [variable], row)[0] for row in np.eye(output.value.size, dtype=x.dtype)])


def hessian(function: Callable[[Variable], Variable], x: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n n"]:
    """H_ij = ∂²f/∂x_i∂x_j: the Jacobian of the recorded gradient."""
    return jacobian(lambda variable: derivatives(function(variable), [variable])[0], x)


def hessian_product(
    function: Callable[[Variable], Variable], x: Float[np.ndarray, "*shape"], direction: Float[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape"]:
    """H v = ∇(∇f · v), without ever building H: two sweeps."""
    variable = Variable(x)
    (slope,) = derivatives(function(variable), [variable])
    return pull_back(total(slope * direction), [variable])[0]


def remembered_bytes(*outputs: Variable) -> int:
    """Memory of all values that the record behind the outputs keeps for the way back (Zhao sec. 5)."""
    return sum(node.value.nbytes for node in in_order(*outputs))


def _number(x: object) -> Known:
    if type(x) is Variable:
        return x.value
    if isinstance(x, Traced):
        raise ValueError(f"the tape computes with numbers, and a {type(x).__name__} has none yet")
    return cast("Known", x)


def _seed(output: Variable, seed: Array | None) -> Array:
    if seed is None and output.shape != ():
        raise ValueError(
            f"an output of shape {output.shape} has no gradient, only a Jacobian; give a seed of that shape for Jᵀ seed"
        )
    given = np.ones((), output.value.dtype) if seed is None else seed
    if given.shape != output.shape:
        raise ValueError(f"the seed must have the shape of the output; got {given.shape} for {output.shape}")
    return given
