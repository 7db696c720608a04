"""Differentiable operations: arithmetic, elementary functions, reductions and matrix products (book sec. 2.1).

All of them accept NumPy arrays, variables of the tape, symbols of a graph and dual numbers.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import erf as scalar_erf
from math import pi, sqrt
from typing import TypeAlias, TypeVar, cast

import numpy as np

from parnassus.autodiff.derivative_rules import (
    Array,
    ArrayLike,
    Operation,
    Shape,
    Term,
    Tracer,
    Value,
    broadcast_to,
    elementwise,
    multilinear,
    shape_of,
    sum_to_shape,
)

Index: TypeAlias = int | slice | tuple[object, ...] | np.ndarray
"""An index of an array: integers, slices, arrays of integers."""

# Arithmetic. The derivatives of sums are identities up to broadcasting.
add = Operation(
    "+",
    np.add,
    (lambda g, _y, a, _b: sum_to_shape(g, shape_of(a)), lambda g, _y, _a, b: sum_to_shape(g, shape_of(b))),
    (lambda t, y, _a, _b: broadcast_to(t, shape_of(y)), lambda t, y, _a, _b: broadcast_to(t, shape_of(y))),
)
subtract = Operation(
    "−",
    np.subtract,
    (lambda g, _y, a, _b: sum_to_shape(g, shape_of(a)), lambda g, _y, _a, b: sum_to_shape(-g, shape_of(b))),
    (lambda t, y, _a, _b: broadcast_to(t, shape_of(y)), lambda t, y, _a, _b: broadcast_to(-t, shape_of(y))),
)
negative = multilinear("−", np.negative, lambda g, _y, _x: -g)
multiply = elementwise("×", np.multiply, lambda _y, _a, b: b, lambda _y, a, _b: a)
divide = elementwise("÷", np.divide, lambda _y, _a, b: 1 / b, lambda y, _a, b: -y / b)


def _erf(x: Array) -> Array:
    return np.asarray(np.vectorize(scalar_erf, otypes=[np.asarray(x).dtype])(x))


# Elementary functions; derivatives use the value y where possible.
exp = elementwise("exp", np.exp, lambda y, _x: y)
log = elementwise("log", np.log, lambda _y, x: 1 / x)
sin: Operation = elementwise("sin", np.sin, lambda _y, x: cos(x))
cos: Operation = elementwise("cos", np.cos, lambda _y, x: -sin(x))
tanh = elementwise("tanh", np.tanh, lambda y, _x: 1 - y * y)
erf = elementwise("erf", _erf, lambda _y, x: 2 / sqrt(pi) * exp(-x * x))
sign = Operation("sign", np.sign)
step = Operation("step", lambda x: np.heaviside(x, 0.0))
absolute = elementwise("abs", np.abs, lambda _y, x: sign(x))
maximum = elementwise("max", np.maximum, lambda _y, a, b: (1 + sign(a - b)) / 2, lambda _y, a, b: (1 - sign(a - b)) / 2)


def power(base: Term, exponent: Value) -> Term:
    """base^exponent; a traced or array-valued exponent needs a positive base."""
    if isinstance(exponent, Tracer | np.ndarray):
        return exp(multiply(log(base), exponent))
    return _power(float(exponent))(base)


@lru_cache(maxsize=256)
def _power(n: float) -> Operation:
    if n == 0:
        return Operation("x^0", np.ones_like)  # constant, also at 0, where n xⁿ⁻¹ would be 0 · ∞
    return elementwise(
        {2.0: "x²", 0.5: "√x", -1.0: "1/x"}.get(n, f"x^{n:g}"), lambda x: x**n, lambda _y, x: n * _power(n - 1)(x)
    )


# Matrix products and indexing: linear, so the VJP is the transpose.
_product = multilinear(
    "@",
    np.matmul,
    lambda g, _y, a, b: sum_to_shape(g @ transpose(b), shape_of(a)),
    lambda g, _y, a, b: sum_to_shape(transpose(a) @ g, shape_of(b)),
)
transpose: Operation = multilinear("ᵀ", lambda x: x.swapaxes(-1, -2), lambda g, _y, _x: transpose(g))
"""Exchanges the last two axes."""


def matmul(a: Term, b: Value) -> Term:
    """Matrix product over the last two axes; a vector is a row on the left and a column on the right."""
    rows, columns = shape_of(a), shape_of(b)
    if not rows or not columns or rows[-1] != columns[-2 if len(columns) > 1 else 0]:
        raise ValueError(f"inner dimensions of a matrix product must agree; got shapes {rows} and {columns}")
    if len(rows) > 1 and len(columns) > 1:
        return _product(a, b)
    left = reshape(a, (1, *rows)) if len(rows) == 1 else a
    right = reshape(b, (*columns, 1)) if len(columns) == 1 else b
    product = _product(left, right)
    shape = shape_of(product)
    shape = shape[:-2] + (shape[-2:-1] if len(rows) > 1 else ()) + (shape[-1:] if len(columns) > 1 else ())
    return reshape(product, shape)


def reshape(x: Term, shape: Shape) -> Term:
    """The same entries in the same order under another shape."""
    return x if shape_of(x) == shape else _reshape(shape)(x)


@lru_cache(maxsize=1024)
def _reshape(shape: Shape) -> Operation:
    return multilinear("reshape", lambda x: x.reshape(shape), lambda g, _y, x: reshape(g, shape_of(x)))


def take(x: Term, index: Index) -> Term:
    """x[index]; its VJP adds each gradient at the index its value was taken from."""
    shape = shape_of(x)

    def put(g: Array) -> Array:
        result = np.zeros(shape, g.dtype)
        np.add.at(result, cast("int", index), g)
        return result

    gather = multilinear("take", lambda value: value[index], lambda g, _y, _x: scatter(g))
    scatter = multilinear("put", put, lambda g, _y, _x: gather(g))
    return gather(x)


def total(x: Term, axis: int | Sequence[int] | None = None) -> Term:
    """The sum over some or all axes, which are removed."""
    shape = shape_of(x)
    summed = {each % len(shape) for each in _axes(axis, len(shape))}
    kept = tuple(1 if position in summed else size for position, size in enumerate(shape))
    leading = summed == set(range(len(summed)))  # then `sum_to_shape` removes them itself
    remaining = tuple(size for position, size in enumerate(shape) if position not in summed)
    return sum_to_shape(x, remaining) if leading else reshape(sum_to_shape(x, kept), remaining)


def mean(x: Term, axis: int | Sequence[int] | None = None) -> Term:
    """The mean over some or all axes, which are removed."""
    shape = shape_of(x)
    count = int(np.prod([shape[each] for each in _axes(axis, len(shape))]))
    return multiply(total(x, axis), 1 / count)


def _axes(axis: int | Sequence[int] | None, dimensions: int) -> Sequence[int]:
    axes = range(dimensions) if axis is None else (axis,) if isinstance(axis, int) else axis
    if any(not -dimensions <= each < dimensions for each in axes):
        raise ValueError(f"axis must lie in {-dimensions} … {dimensions - 1}; got axis={axis}")
    return axes


Self = TypeVar("Self", bound="Arithmetic")


class Arithmetic(Tracer):
    """Python's arithmetic operators for traced values."""

    __slots__ = ()

    def __add__(self: Self, other: Value) -> Self:
        return add(self, other)

    def __radd__(self: Self, other: ArrayLike) -> Self:
        return cast("Self", add(other, self))

    def __sub__(self: Self, other: Value) -> Self:
        return subtract(self, other)

    def __rsub__(self: Self, other: ArrayLike) -> Self:
        return cast("Self", subtract(other, self))

    def __mul__(self: Self, other: Value) -> Self:
        return multiply(self, other)

    def __rmul__(self: Self, other: ArrayLike) -> Self:
        return cast("Self", multiply(other, self))

    def __truediv__(self: Self, other: Value) -> Self:
        return divide(self, other)

    def __rtruediv__(self: Self, other: ArrayLike) -> Self:
        return cast("Self", divide(other, self))

    def __pow__(self: Self, exponent: Value) -> Self:
        return power(self, exponent)

    def __rpow__(self: Self, base: ArrayLike) -> Self:
        return cast("Self", power(base, self))

    def __matmul__(self: Self, other: Value) -> Self:
        return matmul(self, other)

    def __rmatmul__(self: Self, other: ArrayLike) -> Self:
        return cast("Self", matmul(other, self))

    def __neg__(self: Self) -> Self:
        return negative(self)

    def __getitem__(self: Self, index: Index) -> Self:
        return take(self, index)
