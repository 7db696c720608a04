"""Numerical gradients and Jacobians by central differences (book sec. 2.1)."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from parnassus.errors import check_positive


def numerical_gradient(
    function: Callable[[Float[np.ndarray, "*shape"]], float | np.floating | Float[np.ndarray, ""]],
    x: Float[np.ndarray, "*shape"],
    *,
    step_size: float = 1e-6,
) -> Float[np.ndarray, "*shape"]:
    """∂f/∂x_i ≈ (f(x + hᵢ) − f(x − hᵢ)) / 2h for every entry; the error is O(h²) + O(rounding / h)."""
    flat = numerical_jacobian(lambda point: np.reshape(function(point), (1,)), x, step_size=step_size)
    return np.reshape(flat[0], x.shape)


def numerical_jacobian(
    function: Callable[[Float[np.ndarray, "*shape"]], Float[np.ndarray, "..."]],
    x: Float[np.ndarray, "*shape"],
    *,
    step_size: float = 1e-6,
) -> Float[np.ndarray, "m n"]:
    """J_ij = ∂f_i/∂x_j of flattened outputs by flattened inputs, with two evaluations for each input."""
    check_positive(step_size=step_size)
    columns = []
    for index in np.ndindex(*x.shape):
        change = np.zeros_like(x)
        change[index] = step_size
        difference = np.ravel(function(np.asarray(x + change))) - np.ravel(function(np.asarray(x - change)))
        columns.append(difference / (2 * step_size))
    return np.stack(columns, axis=1)
