"""Tape-based automatic differentiation: run a program, record it, differentiate backwards (book sec. 2.1).

    w = Variable(weights)
    loss = cross_entropy(relu(x @ w), labels)      # computed and recorded
    (gradient,) = gradients(loss, [w])             # symbol-to-number

The record is dynamic: of loops and branches it holds the operations that were executed. `differentiable_gradients`
records the backward pass too, so that it can be differentiated again.
"""

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
from jaxtyping import Float

from parnassus.autodiff.derivative_rules import Array, ArrayLike, Operation, Shape, Tracer, Value
from parnassus.autodiff.operations import Arithmetic, total
from parnassus.autodiff.reverse_mode import accumulate_gradients, topological_order


class Variable(Arithmetic):
    """A value with the operation and arguments that produced it; integers become float64.

    >>> x = Variable(3.0)
    >>> y = x * x
    >>> float(y.value)
    9.0
    """

    __slots__ = ("arguments", "operation", "value")
    level = 1

    def __init__(self, value: ArrayLike, operation: Operation | None = None, arguments: tuple[Value, ...] = ()) -> None:
        array = np.asarray(value)
        self.value: Array = array if array.dtype.kind == "f" else array.astype(np.float64)
        self.operation = operation
        self.arguments = arguments

    @property
    def shape(self) -> Shape:
        return self.value.shape

    def trace(self, operation: Operation, arguments: tuple[Value, ...]) -> "Variable":
        """Compute the value and record the operation."""
        return Variable(operation.value(*map(_value_of, arguments)), operation, arguments)

    def __repr__(self) -> str:
        return f"Variable({self.value!r})" if self.operation is None else f"{self.operation.name} → {self.value!r}"


def detach(x: Variable) -> Array:
    """The value as a constant, through which no gradient flows."""
    return x.value


def gradients(output: Variable, inputs: Sequence[Variable], seed: Array | None = None) -> list[Array]:
    """∇_x (seed · output) for each input x, as arrays: Jᵀ seed (book eq. 2.2). A scalar output needs no seed.

    Gradients are returned and do not accumulate between calls.
    """
    found = accumulate_gradients(output, inputs, _seed(output, seed), _value_of)
    return [np.zeros_like(x.value) if g is None else np.asarray(g) for x, g in zip(inputs, found, strict=True)]


def differentiable_gradients(output: Variable, inputs: Sequence[Variable], seed: Array | None = None) -> list[Variable]:
    """`gradients`, recorded on the tape, so that they can be differentiated again."""
    found = accumulate_gradients(output, inputs, Variable(_seed(output, seed)), lambda node: cast("Value", node))
    return [
        Variable(np.zeros_like(x.value)) if g is None else cast("Variable", g)
        for x, g in zip(inputs, found, strict=True)
    ]


def value_and_gradients(function: Callable[..., Variable], *points: ArrayLike) -> tuple[Array, list[Array]]:
    """f(points) and its gradients, by one forward and one backward pass."""
    variables = [Variable(point) for point in points]
    output = function(*variables)
    return output.value, gradients(output, variables)


def jacobian(function: Callable[[Variable], Variable], x: Float[np.ndarray, " n"]) -> Float[np.ndarray, "m n"]:
    """J_ij = ∂f_i/∂x_j, one backward pass for each of the m outputs (book eq. 2.2)."""
    variable = Variable(x)
    output = function(variable)
    return np.stack([gradients(output, [variable], row)[0] for row in np.eye(output.value.size, dtype=x.dtype)])


def hessian(function: Callable[[Variable], Variable], x: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n n"]:
    """H_ij = ∂²f/∂x_i∂x_j, the Jacobian of the gradient."""
    return jacobian(lambda variable: differentiable_gradients(function(variable), [variable])[0], x)


def hessian_vector_product(
    function: Callable[[Variable], Variable], x: Float[np.ndarray, "*shape"], direction: Float[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape"]:
    """H v = ∇(∇f · v) by two backward passes, without building H."""
    variable = Variable(x)
    (gradient,) = differentiable_gradients(function(variable), [variable])
    return gradients(total(gradient * direction), [variable])[0]


def tape_bytes(*outputs: Variable) -> int:
    """Memory of all values that the tape stores for the backward pass (Zhao sec. 5)."""
    return sum(node.value.nbytes for node in topological_order(*outputs))


def _value_of(x: object) -> ArrayLike:
    if type(x) is Variable:
        return x.value
    if isinstance(x, Tracer):
        raise ValueError(f"the tape needs arrays or variables; got a {type(x).__name__}")
    return cast("ArrayLike", x)


def _seed(output: Variable, seed: Array | None) -> Array:
    if seed is None and output.shape != ():
        raise ValueError(
            f"a non-scalar output needs a seed of its shape, for Jᵀ seed; got no seed for shape {output.shape}"
        )
    vector = np.ones((), output.value.dtype) if seed is None else seed
    if vector.shape != output.shape:
        raise ValueError(f"the seed must have the shape of the output; got {vector.shape} for {output.shape}")
    return vector
