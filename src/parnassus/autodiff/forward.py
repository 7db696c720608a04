"""Forward mode: numbers that carry their rate of change along (book sec. 2.1).

A dual number x + εẋ with ε² = 0 passes through f as f(x) + ε f′(x) ẋ. One run gives J v for one direction v, keeps no
record, and costs about twice the plain run; a gradient needs a run for each input, where the tape needs one sweep.
"""

from collections.abc import Callable
from functools import reduce
from itertools import count
from typing import TypeVar, cast

import numpy as np
from jaxtyping import Float

from parnassus.autodiff.operation import Known, Operation, Shape, Value, shape_of
from parnassus.autodiff.operations import Arithmetic, add

Base = TypeVar("Base", bound=Value)
_births = count(2)


class Dual(Arithmetic):
    """A value, and how it changes along the direction with which the dual number was born."""

    __slots__ = ("_rank", "tangent", "value")

    def __init__(self, value: Value, tangent: Value, rank: int) -> None:
        self.value = value
        self.tangent = tangent
        self._rank = rank

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def shape(self) -> Shape:
        return shape_of(self.value)

    def carry(self, operation: Operation, arguments: tuple[Value, ...]) -> "Dual":
        """ẏ = Σ_i (∂y/∂x_i) ẋ_i over the arguments of this direction; others, older ones too, are constants."""
        mine = [isinstance(each, Dual) and each.rank == self.rank for each in arguments]
        x = [cast("Dual", each).value if own else each for each, own in zip(arguments, mine, strict=True)]
        y = operation(*x)
        changes = [
            rule(cast("Dual", each).tangent, y, *x)
            for rule, each, own in zip(operation.pushes, arguments, mine, strict=False)
            if own
        ]
        tangent = reduce(add, changes) if changes else np.zeros(shape_of(y))
        return Dual(y, tangent, self.rank)

    def __repr__(self) -> str:
        return f"Dual({self.value!r} + ε {self.tangent!r})"


def push_forward(function: Callable[..., Value], point: Base, direction: Base) -> tuple[Base, Base]:
    """f(x) and J v, the change of f at x along v, by one run of f on dual numbers.

    Every call has an ε of its own, the youngest the innermost, so that calls may nest: x and v may be dual numbers, or
    variables of the tape (then J v can be swept back), or symbols (then it is a graph).
    """
    if shape_of(point) != shape_of(direction):
        raise ValueError(f"a direction has the shape of its point; got {shape_of(direction)} for {shape_of(point)}")
    rank = next(_births)
    result = function(Dual(point, direction, rank))
    if isinstance(result, Dual) and result.rank == rank:
        return cast("Base", result.value), cast("Base", result.tangent)
    return cast("Base", result), cast("Base", np.zeros(shape_of(result)))


def jacobian_by_columns(function: Callable[[Dual], Value], x: Float[np.ndarray, " n"]) -> Float[np.ndarray, "m n"]:
    """J_ij = ∂f_i/∂x_j, a run for each of the n inputs."""
    columns: list[Known] = [push_forward(function, x, direction)[1] for direction in np.eye(x.size, dtype=x.dtype)]
    return np.stack([np.asarray(column) for column in columns], axis=1)
