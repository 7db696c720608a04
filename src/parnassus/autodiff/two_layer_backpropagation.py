"""Forward and backward pass of a two-layer network, written out by hand (Zhao sec. 5).

    z = W₁x,   h = φ(z),   o = W₂h,   J = l(o) + (λ/2) (‖W₁‖² + ‖W₂‖²)

Rows are examples, so W₁x is computed as X W₁ᵀ, and gradients are summed over the rows.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from parnassus.errors import check_non_negative


@dataclass(frozen=True)
class ForwardValues:
    """The values that the backward pass needs: input, pre-activations, activations and output.

    >>> import numpy as np
    >>> zeros = np.zeros((1, 2))
    >>> ForwardValues(x=zeros, z=zeros, h=zeros, o=zeros).o.shape
    (1, 2)
    """

    x: Float[np.ndarray, "batch inputs"]
    z: Float[np.ndarray, "batch hidden"]
    h: Float[np.ndarray, "batch hidden"]
    o: Float[np.ndarray, "batch outputs"]

    @property
    def size(self) -> int:
        """The number of stored scalars."""
        return self.x.size + self.z.size + self.h.size + self.o.size


def propagate_forward(
    x: Float[np.ndarray, "batch inputs"],
    w1: Float[np.ndarray, "hidden inputs"],
    w2: Float[np.ndarray, "outputs hidden"],
    phi: Callable[[Float[np.ndarray, "..."]], Float[np.ndarray, "..."]],
) -> ForwardValues:
    """Compute and store z, h and o (Zhao sec. 5)."""
    z = x @ w1.T
    h = phi(z)
    return ForwardValues(x, z, h, h @ w2.T)


def propagate_backward(
    values: ForwardValues,
    output_gradient: Float[np.ndarray, "batch outputs"],
    w1: Float[np.ndarray, "hidden inputs"],
    w2: Float[np.ndarray, "outputs hidden"],
    *,
    phi_derivative: Callable[[Float[np.ndarray, "..."]], Float[np.ndarray, "..."]],
    penalty: float = 0.0,
) -> tuple[Float[np.ndarray, "hidden inputs"], Float[np.ndarray, "outputs hidden"]]:
    """∂J/∂W₁ and ∂J/∂W₂ from ∂l/∂o and the stored values, without evaluating the network again (Zhao sec. 5).

    ∂J/∂W₂ = (∂l/∂o) hᵀ + λW₂
    ∂J/∂z  = (W₂ᵀ ∂l/∂o) ⊙ φ′(z)
    ∂J/∂W₁ = (∂J/∂z) xᵀ + λW₁
    """
    check_non_negative(penalty=penalty)
    z_gradient = output_gradient @ w2 * phi_derivative(values.z)
    return z_gradient.T @ values.x + penalty * w1, output_gradient.T @ values.h + penalty * w2
