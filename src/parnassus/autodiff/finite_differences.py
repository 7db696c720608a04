"""Derivatives by looking: central differences, the judge of every rule (book sec. 2.1)."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float


def difference_gradient(
    function: Callable[[Float[np.ndarray, "*shape"]], float | np.floating | Float[np.ndarray, ""]],
    x: Float[np.ndarray, "*shape"],
    *,
    width: float = 1e-6,
) -> Float[np.ndarray, "*shape"]:
    """∂f/∂x_i ≈ (f(x + hᵢ) − f(x − hᵢ)) / 2h for every entry; the error is O(h²) + O(rounding / h)."""
    flat = difference_jacobian(lambda point: np.reshape(function(point), (1,)), x, width=width)
    return np.reshape(flat[0], x.shape)


def difference_jacobian(
    function: Callable[[Float[np.ndarray, "*shape"]], Float[np.ndarray, "..."]],
    x: Float[np.ndarray, "*shape"],
    *,
    width: float = 1e-6,
) -> Float[np.ndarray, "m n"]:
    """J_ij = ∂f_i/∂x_j of flattened outputs by flattened inputs, two runs for each input."""
    if not width > 0:
        raise ValueError(f"the width of a difference must be positive; got width={width}")
    columns = []
    for place in np.ndindex(*x.shape):
        change = np.zeros_like(x)
        change[place] = width
        columns.append(
            (np.ravel(function(np.asarray(x + change))) - np.ravel(function(np.asarray(x - change)))) / (2 * width)
        )
    return np.stack(columns, axis=1)
