"""An operation: how it computes its value, and how derivatives pass through it in both directions (book sec. 2.1).

An operation y = f(x₁, …, x_k) has a Jacobian J_i for each argument. Nobody ever builds J_i: two rules apply it.

    pull_i(g) = J_iᵀ g    backwards, a vector-Jacobian product                     (book eq. 2.2)
    push_i(t) = J_i t     forwards, a Jacobian-vector product

Rules are written once, with operations. On arrays they give numbers; on anything traced (a variable of the tape, a
symbol of a graph, a dual number) they are traced in turn, which is why derivatives can be differentiated again.
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
Known: TypeAlias = float | int | np.floating | Array


class Traced(ABC):
    """What an operation does not compute at once: it hands itself over, and the argument of highest rank takes it."""

    __slots__ = ()
    __array_ufunc__ = None  # so that array * traced comes here instead of looping over the array

    @property
    @abstractmethod
    def rank(self) -> int: ...

    @property
    @abstractmethod
    def shape(self) -> Shape: ...

    @abstractmethod
    def carry(self, operation: "Operation", arguments: "tuple[Value, ...]") -> "Traced":
        """The operation on these arguments, of which this object is one."""


Value: TypeAlias = Known | Traced
Term = TypeVar("Term", bound=Value)
Rule: TypeAlias = Callable[..., Value]
"""`rule(direction, y, x₁, …, x_k)`; a slope is a rule without the direction."""


@dataclass(frozen=True, eq=False)
class Operation:
    """A value and its two rules for each argument; without rules it is locally constant and passes nothing on."""

    name: str
    value: Callable[..., Array] = field(repr=False)
    pulls: tuple[Rule, ...] = field(default=(), repr=False)
    pushes: tuple[Rule, ...] = field(default=(), repr=False)

    def __call__(self, first: Term, *rest: Value) -> Term:
        """On arrays the value at once; otherwise whatever the traced argument of highest rank makes of it."""
        arguments = (first, *rest)
        taker: Traced | None = None
        for argument in arguments:
            if isinstance(argument, Traced) and (taker is None or argument.rank > taker.rank):
                taker = argument
        made: Value = np.asarray(self.value(*arguments)) if taker is None else taker.carry(self, arguments)
        return cast("Term", made)


def multilinear(name: str, value: Callable[..., Array], *pulls: Rule) -> Operation:
    """An operation linear in each argument: pushed forwards, a change simply stands in for its argument."""

    def stand_in(place: int) -> Rule:
        return lambda change, _, *x: made(*x[:place], change, *x[place + 1 :])

    made = Operation(name, value, pulls, tuple(map(stand_in, range(len(pulls)))))
    return made


def elementwise(name: str, value: Callable[..., Array], *slopes: Rule) -> Operation:
    """An operation on each number alone, by its partial derivatives: `slope_i(y, x₁, …, x_k)` = ∂y/∂x_i.

    Its Jacobians are diagonal, so both rules multiply by the slope. Arguments are broadcast against each other; what
    was spread out on the way there is summed on the way back.
    """

    def pull(place: int) -> Rule:
        return lambda g, y, *x: fit(g * slopes[place](y, *x), shape_of(x[place]))

    def push(place: int) -> Rule:
        return lambda t, y, *x: spread(t * slopes[place](y, *x), shape_of(y))

    places = range(len(slopes))
    return Operation(name, value, tuple(map(pull, places)), tuple(map(push, places)))


def shape_of(x: Value) -> Shape:
    """The shape of an array or of anything traced; a number has the shape ()."""
    shape: Shape = getattr(x, "shape", ())
    return shape


def spread(x: Term, shape: Shape) -> Term:
    """Repeat x along new and stretched axes up to this shape; the transpose is `fit`."""
    return x if shape_of(x) == shape else _spread(shape)(x)


def fit(x: Term, shape: Shape) -> Term:
    """Sum x down to this shape, over all that `spread` repeats on the way up; the transpose is `spread`."""
    return x if shape_of(x) == shape else _fit(shape)(x)


@lru_cache(maxsize=1024)
def _spread(shape: Shape) -> Operation:
    return multilinear("spread", lambda x: np.broadcast_to(x, shape), lambda g, _, x: fit(g, shape_of(x)))


@lru_cache(maxsize=1024)
def _fit(shape: Shape) -> Operation:
    def value(x: Array) -> Array:
        extra = x.ndim - len(shape)
        stretched = [extra + axis for axis, size in enumerate(shape) if size == 1 and x.shape[extra + axis] != 1]
        return np.asarray(np.sum(x, axis=(*range(extra), *stretched))).reshape(shape)

    return multilinear("sum", value, lambda g, _, x: spread(g, shape_of(x)))
