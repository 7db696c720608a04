"""The table of operations: each with its value, and its derivative rules written once (book sec. 2.1).

Everything here works on NumPy arrays, on variables of the tape, on symbols of a graph and on dual numbers alike.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import erf as erf_of_a_number
from math import pi, sqrt
from typing import TypeAlias, TypeVar, cast

import numpy as np

from parnassus.autodiff.operation import (
    Array,
    Known,
    Operation,
    Shape,
    Term,
    Traced,
    Value,
    elementwise,
    fit,
    multilinear,
    shape_of,
    spread,
)

Index: TypeAlias = int | slice | tuple[object, ...] | np.ndarray
"""Whatever picks entries of an array: positions, slices, arrays of positions."""

# Arithmetic. Sums pass what comes to them unchanged, up to broadcasting.
add = Operation(
    "+",
    np.add,
    (lambda g, _y, a, _b: fit(g, shape_of(a)), lambda g, _y, _a, b: fit(g, shape_of(b))),
    (lambda t, y, _a, _b: spread(t, shape_of(y)), lambda t, y, _a, _b: spread(t, shape_of(y))),
)
subtract = Operation(
    "−",
    np.subtract,
    (lambda g, _y, a, _b: fit(g, shape_of(a)), lambda g, _y, _a, b: fit(-g, shape_of(b))),
    (lambda t, y, _a, _b: spread(t, shape_of(y)), lambda t, y, _a, _b: spread(-t, shape_of(y))),
)
negative = multilinear("−", np.negative, lambda g, _y, _x: -g)
multiply = elementwise("×", np.multiply, lambda _y, _a, b: b, lambda _y, a, _b: a)
divide = elementwise("÷", np.divide, lambda _y, _a, b: 1 / b, lambda y, _a, b: -y / b)


def _erf(x: Array) -> Array:
    return np.asarray(np.vectorize(erf_of_a_number, otypes=[np.asarray(x).dtype])(x))


# Functions of one number; where the slope is known from the value y, nothing is computed twice.
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
    """The power base^exponent; an exponent that is traced, or an array, needs a positive base."""
    if isinstance(exponent, Traced | np.ndarray):
        return exp(multiply(log(base), exponent))
    return _power(float(exponent))(base)


@lru_cache(maxsize=256)
def _power(n: float) -> Operation:
    if n == 0:
        return Operation("x^0", np.ones_like)  # constant, also at 0, where n xⁿ⁻¹ would be 0 · ∞
    return elementwise(
        {2.0: "x²", 0.5: "√x", -1.0: "1/x"}.get(n, f"x^{n:g}"), lambda x: x**n, lambda _y, x: n * _power(n - 1)(x)
    )


# Products and the moving of entries: all linear, so the way back is the transpose.
_product = multilinear(
    "@",
    np.matmul,
    lambda g, _y, a, b: fit(g @ transpose(b), shape_of(a)),
    lambda g, _y, a, b: fit(transpose(a) @ g, shape_of(b)),
)
transpose: Operation = multilinear("ᵀ", lambda x: x.swapaxes(-1, -2), lambda g, _y, _x: transpose(g))
"""The last two axes exchanged."""


def matmul(a: Term, b: Value) -> Term:
    """Matrix product over the last two axes; a vector is a row on the left and a column on the right."""
    rows, columns = shape_of(a), shape_of(b)
    if not rows or not columns or rows[-1] != columns[-2 if len(columns) > 1 else 0]:
        raise ValueError(f"a product needs as many columns on the left as rows on the right; got {rows} and {columns}")
    if len(rows) > 1 and len(columns) > 1:
        return _product(a, b)
    left = reshape(a, (1, *rows)) if len(rows) == 1 else a
    right = reshape(b, (*columns, 1)) if len(columns) == 1 else b
    whole = _product(left, right)
    kept = shape_of(whole)
    kept = kept[:-2] + (kept[-2:-1] if len(rows) > 1 else ()) + (kept[-1:] if len(columns) > 1 else ())
    return reshape(whole, kept)


def reshape(x: Term, shape: Shape) -> Term:
    """The same entries in the same order under another shape."""
    return x if shape_of(x) == shape else _reshape(shape)(x)


@lru_cache(maxsize=1024)
def _reshape(shape: Shape) -> Operation:
    return multilinear("reshape", lambda x: x.reshape(shape), lambda g, _y, x: reshape(g, shape_of(x)))


def take(x: Term, index: Index) -> Term:
    """x[index]; on the way back each gradient is added at the place its value came from."""
    shape = shape_of(x)

    def put(g: Array) -> Array:
        whole = np.zeros(shape, g.dtype)
        np.add.at(whole, cast("int", index), g)
        return whole

    picking = multilinear("take", lambda value: value[index], lambda g, _y, _x: placing(g))
    placing = multilinear("put", put, lambda g, _y, _x: picking(g))
    return picking(x)


def total(x: Term, axis: int | Sequence[int] | None = None) -> Term:
    """The sum over some axes, or over all; the axes are gone afterwards."""
    shape = shape_of(x)
    gone = {each % len(shape) for each in _axes(axis, len(shape))}
    kept = tuple(1 if place in gone else size for place, size in enumerate(shape))
    leading = gone == set(range(len(gone)))  # then `fit` drops them by itself
    left = tuple(size for place, size in enumerate(shape) if place not in gone)
    return fit(x, left) if leading else reshape(fit(x, kept), left)


def mean(x: Term, axis: int | Sequence[int] | None = None) -> Term:
    """The mean over some axes, or over all."""
    shape = shape_of(x)
    count = int(np.prod([shape[each] for each in _axes(axis, len(shape))]))
    return multiply(total(x, axis), 1 / count)


def _axes(axis: int | Sequence[int] | None, dimensions: int) -> Sequence[int]:
    axes = range(dimensions) if axis is None else (axis,) if isinstance(axis, int) else axis
    if any(not -dimensions <= each < dimensions for each in axes):
        raise ValueError(f"axes must be from {-dimensions} to {dimensions - 1}; got axis={axis}")
    return axes


Own = TypeVar("Own", bound="Arithmetic")


class Arithmetic(Traced):
    """Traced things under the operators of Python."""

    __slots__ = ()

    def __add__(self: Own, other: Value) -> Own:
        return add(self, other)

    def __radd__(self: Own, other: Known) -> Own:
        return cast("Own", add(other, self))

    def __sub__(self: Own, other: Value) -> Own:
        return subtract(self, other)

    def __rsub__(self: Own, other: Known) -> Own:
        return cast("Own", subtract(other, self))

    def __mul__(self: Own, other: Value) -> Own:
        return multiply(self, other)

    def __rmul__(self: Own, other: Known) -> Own:
        return cast("Own", multiply(other, self))

    def __truediv__(self: Own, other: Value) -> Own:
        return divide(self, other)

    def __rtruediv__(self: Own, other: Known) -> Own:
        return cast("Own", divide(other, self))

    def __pow__(self: Own, exponent: Value) -> Own:
        return power(self, exponent)

    def __rpow__(self: Own, base: Known) -> Own:
        return cast("Own", power(base, self))

    def __matmul__(self: Own, other: Value) -> Own:
        return matmul(self, other)

    def __rmatmul__(self: Own, other: Known) -> Own:
        return cast("Own", matmul(other, self))

    def __neg__(self: Own) -> Own:
        return negative(self)

    def __getitem__(self: Own, index: Index) -> Own:
        return take(self, index)
