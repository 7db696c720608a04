"""Activations and losses, composed of operations (book secs. 1.2, 1.4)."""

from functools import lru_cache
from math import sqrt

import numpy as np
from jaxtyping import Int

from parnassus.autodiff.derivative_rules import Array, Operation, Term, elementwise, shape_of
from parnassus.autodiff.operations import add, erf, mean, multiply, reshape, step, subtract, take, total


def _sigmoid(x: Array) -> Array:
    exponential = np.exp(-np.abs(x))  # never overflows
    numerator = np.where(np.asarray(x) >= 0, np.ones_like(exponential), exponential)
    return np.asarray(numerator / (1 + exponential))


relu = elementwise("relu", lambda x: np.maximum(x, 0), lambda _y, x: step(x))
"""max(x, 0), with derivative 0 at x = 0 (book eq. 1.5)."""

sigmoid = elementwise("σ", _sigmoid, lambda y, _x: y * (1 - y))
"""1 / (1 + e⁻ˣ), with derivative y (1 − y) (book eq. 1.7)."""


def leaky_relu(x: Term, alpha: float = 0.01) -> Term:
    """Leaky ReLU: x where x > 0, else αx (book eq. 1.8)."""
    return _leaky_relu(alpha)(x)


@lru_cache(maxsize=64)
def _leaky_relu(alpha: float) -> Operation:
    return elementwise(
        "leaky relu", lambda x: np.where(x > 0, x, alpha * x), lambda _y, x: alpha + (1 - alpha) * step(x)
    )


def gelu(x: Term) -> Term:
    """½ x (1 + erf(x/√2)) (book eq. 1.9)."""
    return multiply(multiply(x, 0.5), add(erf(multiply(x, 1 / sqrt(2))), 1.0))


def _log_sum_exp(x: Array) -> Array:
    maximum = x.max(-1, keepdims=True)
    return np.asarray((np.log(np.exp(x - maximum).sum(-1, keepdims=True)) + maximum)[..., 0])


def _softmax(x: Array) -> Array:
    exponentials = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(-1, keepdims=True))


softmax = Operation(
    "softmax",
    _softmax,
    (lambda g, y, _x: y * (g - _column(total(g * y, -1))),),
    (lambda t, y, _x: y * (t - _column(total(t * y, -1))),),
)
"""exp(x_i) / Σ_j exp(x_j) over the last axis, with the symmetric Jacobian diag(p) − p pᵀ (book eq. 1.19)."""

log_sum_exp = Operation(
    "log Σ exp",
    _log_sum_exp,
    (lambda g, _y, x: _column(g) * softmax(x),),
    (lambda t, _y, x: total(t * softmax(x), -1),),
)
"""log Σ_j exp(x_j) over the last axis, without overflow; its gradient is the softmax (book sec. 1.4)."""


def cross_entropy(logits: Term, labels: Int[np.ndarray, " batch"]) -> Term:
    """Mean over the rows of log Σ_j exp(z_j − z_k), the cross-entropy of softmax(z) at the label k (book eq. 1.20)."""
    rows, classes = shape_of(logits)
    if labels.shape != (rows,) or labels.min() < 0 or labels.max() >= classes:
        raise ValueError(
            f"labels must be {rows} integers from 0 to {classes - 1}; "
            f"got shape {labels.shape} from {labels.min()} to {labels.max()}"
        )
    return mean(log_sum_exp(subtract(logits, _column(take(logits, (np.arange(rows), labels))))))


def squared_error(prediction: Term, target: Array) -> Term:
    """Mean over the rows of ‖f − y‖² (book eq. 1.12)."""
    difference = subtract(prediction, target)
    return multiply(total(multiply(difference, difference)), 1 / shape_of(prediction)[0])


def _column(x: Term) -> Term:
    """Append an axis of size 1."""
    return reshape(x, (*shape_of(x), 1))
