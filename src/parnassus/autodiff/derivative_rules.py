"""Operations with their vector-Jacobian and Jacobian-vector products (book sec. 2.1).

An operation y = f(x₁, …, x_k) has a Jacobian J_i for each argument, which is never built; two rules apply it:

    vjp_i(g) = J_iᵀ g    reverse mode, a vector-Jacobian product                   (book eq. 2.2)
    jvp_i(t) = J_i t     forward mode, a Jacobian-vector product

Rules are written in terms of operations. Applied to arrays they return arrays; applied to traced values (variables of
the tape, symbols of a graph, dual numbers) they are traced in turn, so that derivatives can be differentiated again.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias, TypeVar, cast

import numpy as np
from jaxtyping import Float

Array: TypeAlias = Float[np.ndarray, "..."]
Shape: TypeAlias = tuple[int, ...]
ArrayLike: TypeAlias = float | int | np.floating | Array


class Tracer(ABC):
    """A value on which operations are recorded; an operation is traced by its argument of the highest level."""

    __slots__ = ()
    __array_ufunc__ = None  # makes array * traced call Traced.__rmul__ instead of looping over the array

    @property
    @abstractmethod
    def level(self) -> int: ...

    @property
    @abstractmethod
    def shape(self) -> Shape: ...

    @abstractmethod
    def trace(self, operation: "Operation", arguments: "tuple[Value, ...]") -> "Tracer":
        """The result of the operation on these arguments, of which this object is one."""


Value: TypeAlias = ArrayLike | Tracer
Term = TypeVar("Term", bound=Value)
Rule: TypeAlias = Callable[..., Value]
"""`rule(direction, y, x₁, …, x_k)`; for a partial derivative, without the direction."""


@dataclass(frozen=True, eq=False)
class Operation:
    """A function with a VJP and a JVP rule for each argument; without rules, its derivative is 0 everywhere.

    >>> double = Operation("double", lambda x: 2 * x)
    >>> double.name
    'double'
    """

    name: str
    value: Callable[..., Array] = field(repr=False)
    vjps: tuple[Rule, ...] = field(default=(), repr=False)
    jvps: tuple[Rule, ...] = field(default=(), repr=False)

    def __call__(self, first: Term, *rest: Value) -> Term:
        """The value on arrays; otherwise the result traced by the argument of the highest level."""
        arguments = (first, *rest)
        tracer: Tracer | None = None
        for argument in arguments:
            if isinstance(argument, Tracer) and (tracer is None or argument.level > tracer.level):
                tracer = argument
        result: Value = np.asarray(self.value(*arguments)) if tracer is None else tracer.trace(self, arguments)
        return cast("Term", result)


def multilinear(name: str, value: Callable[..., Array], *vjps: Rule) -> Operation:
    """An operation linear in each argument: its JVP replaces the argument by the tangent."""

    def jvp(index: int) -> Rule:
        return lambda tangent, _, *x: operation(*x[:index], tangent, *x[index + 1 :])

    operation = Operation(name, value, vjps, tuple(map(jvp, range(len(vjps)))))
    return operation


def elementwise(name: str, value: Callable[..., Array], *derivatives: Rule) -> Operation:
    """An elementwise operation, by its partial derivatives: `derivatives[i](y, x₁, …, x_k)` = ∂y/∂x_i.

    Its Jacobians are diagonal, so both rules multiply by the partial derivative. Arguments are broadcast; the VJP sums
    over the broadcast axes.
    """

    def vjp(index: int) -> Rule:
        return lambda g, y, *x: sum_to_shape(g * derivatives[index](y, *x), shape_of(x[index]))

    def jvp(index: int) -> Rule:
        return lambda t, y, *x: broadcast_to(t * derivatives[index](y, *x), shape_of(y))

    indices = range(len(derivatives))
    return Operation(name, value, tuple(map(vjp, indices)), tuple(map(jvp, indices)))


def shape_of(x: Value) -> Shape:
    """The shape of an array or a traced value; () for a scalar."""
    shape: Shape = getattr(x, "shape", ())
    return shape


def broadcast_to(x: Term, shape: Shape) -> Term:
    """Broadcast x to this shape; the transpose of `sum_to_shape`."""
    return x if shape_of(x) == shape else _broadcast_operation(shape)(x)


def sum_to_shape(x: Term, shape: Shape) -> Term:
    """Sum x over the axes along which an array of this shape would be broadcast; the transpose of `broadcast_to`."""
    return x if shape_of(x) == shape else _sum_operation(shape)(x)


@lru_cache(maxsize=1024)
def _broadcast_operation(shape: Shape) -> Operation:
    return multilinear("broadcast", lambda x: np.broadcast_to(x, shape), lambda g, _, x: sum_to_shape(g, shape_of(x)))


@lru_cache(maxsize=1024)
def _sum_operation(shape: Shape) -> Operation:
    def value(x: Array) -> Array:
        extra = x.ndim - len(shape)
        stretched = [extra + axis for axis, size in enumerate(shape) if size == 1 and x.shape[extra + axis] != 1]
        return np.asarray(np.sum(x, axis=(*range(extra), *stretched))).reshape(shape)

    return multilinear("sum", value, lambda g, _, x: broadcast_to(g, shape_of(x)))
