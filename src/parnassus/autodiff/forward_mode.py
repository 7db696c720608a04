"""Forward-mode differentiation by dual numbers (book sec. 2.1).

A dual number x + εẋ with ε² = 0 passes through f as f(x) + ε f′(x) ẋ. One evaluation gives J v for one direction v,
keeps no record, and costs about twice a plain evaluation; a gradient needs one evaluation for each input, where reverse
mode needs a single backward pass.
"""

from collections.abc import Callable
from functools import reduce
from itertools import count
from typing import TypeVar, cast

import numpy as np
from jaxtyping import Float

from parnassus.autodiff.derivative_rules import ArrayLike, Operation, Shape, Value, shape_of
from parnassus.autodiff.operations import Arithmetic, add

Base = TypeVar("Base", bound=Value)
_levels = count(2)


class Dual(Arithmetic):
    """A value and its tangent, the derivative along the direction of one `jvp` call.

    >>> import numpy as np
    >>> value, tangent = jvp(lambda x: x * x, np.array(3.0), np.array(1.0))
    >>> float(value), float(tangent)
    (9.0, 6.0)
    """

    __slots__ = ("_level", "tangent", "value")

    def __init__(self, value: Value, tangent: Value, level: int) -> None:
        self.value = value
        self.tangent = tangent
        self._level = level

    @property
    def level(self) -> int:
        return self._level

    @property
    def shape(self) -> Shape:
        return shape_of(self.value)

    def trace(self, operation: Operation, arguments: tuple[Value, ...]) -> "Dual":
        """ẏ = Σ_i (∂y/∂x_i) ẋ_i over the arguments of this level; all others are constants."""
        is_dual = [isinstance(each, Dual) and each.level == self.level for each in arguments]
        x = [cast("Dual", each).value if dual else each for each, dual in zip(arguments, is_dual, strict=True)]
        y = operation(*x)
        terms = [
            rule(cast("Dual", each).tangent, y, *x)
            for rule, each, dual in zip(operation.jvps, arguments, is_dual, strict=False)
            if dual
        ]
        tangent = reduce(add, terms) if terms else np.zeros(shape_of(y))
        return Dual(y, tangent, self.level)

    def __repr__(self) -> str:
        return f"Dual({self.value!r} + ε {self.tangent!r})"


def jvp(function: Callable[..., Value], point: Base, direction: Base) -> tuple[Base, Base]:
    """f(x) and the Jacobian-vector product J v, by one evaluation of f on dual numbers.

    Every call has its own ε, so calls may be nested: x and v may be dual numbers, variables of the tape (then J v can
    be differentiated in reverse mode) or symbols (then J v is a graph).
    """
    if shape_of(point) != shape_of(direction):
        raise ValueError(f"direction must have the shape of the point; got {shape_of(direction)} for {shape_of(point)}")
    level = next(_levels)
    result = function(Dual(point, direction, level))
    if isinstance(result, Dual) and result.level == level:
        return cast("Base", result.value), cast("Base", result.tangent)
    return cast("Base", result), cast("Base", np.zeros(shape_of(result)))


def forward_mode_jacobian(function: Callable[[Dual], Value], x: Float[np.ndarray, " n"]) -> Float[np.ndarray, "m n"]:
    """J_ij = ∂f_i/∂x_j, one evaluation for each of the n columns."""
    columns: list[ArrayLike] = [jvp(function, x, direction)[1] for direction in np.eye(x.size, dtype=x.dtype)]
    return np.stack([np.asarray(column) for column in columns], axis=1)
