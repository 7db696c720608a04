"""Forward and backward propagation of a two-layer network, written out by hand (Zhao sec. 5).

    z = W₁x,   h = φ(z),   o = W₂h,   J = l(o) + (λ/2) (‖W₁‖² + ‖W₂‖²)

Rows are examples here, so W₁x reads X W₁ᵀ, and the gradients are those of the formulas summed over the rows.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Kept:
    """Everything the way back needs: the input and every value between it and the output."""

    x: Float[np.ndarray, "batch inputs"]
    z: Float[np.ndarray, "batch hidden"]
    h: Float[np.ndarray, "batch hidden"]
    o: Float[np.ndarray, "batch outputs"]

    @property
    def numbers(self) -> int:
        """How many numbers are kept."""
        return self.x.size + self.z.size + self.h.size + self.o.size


def propagate_forward(
    x: Float[np.ndarray, "batch inputs"],
    w1: Float[np.ndarray, "hidden inputs"],
    w2: Float[np.ndarray, "outputs hidden"],
    phi: Callable[[Float[np.ndarray, "..."]], Float[np.ndarray, "..."]],
) -> Kept:
    """Compute and keep z, h and o."""
    z = x @ w1.T
    h = phi(z)
    return Kept(x, z, h, h @ w2.T)


def propagate_backward(
    kept: Kept,
    slope_at_output: Float[np.ndarray, "batch outputs"],
    w1: Float[np.ndarray, "hidden inputs"],
    w2: Float[np.ndarray, "outputs hidden"],
    *,
    phi_slope: Callable[[Float[np.ndarray, "..."]], Float[np.ndarray, "..."]],
    penalty: float = 0.0,
) -> tuple[Float[np.ndarray, "hidden inputs"], Float[np.ndarray, "outputs hidden"]]:
    """∂J/∂W₁ and ∂J/∂W₂ from ∂l/∂o and what the forward pass kept; nothing is computed again (Zhao sec. 5).

    ∂J/∂W₂ = (∂l/∂o) hᵀ + λW₂
    ∂J/∂z  = (W₂ᵀ ∂l/∂o) ⊙ φ′(z)
    ∂J/∂W₁ = (∂J/∂z) xᵀ + λW₁
    """
    if not penalty >= 0:
        raise ValueError(f"the penalty must not be negative; got penalty={penalty}")
    slope_at_z = slope_at_output @ w2 * phi_slope(kept.z)
    return slope_at_z.T @ kept.x + penalty * w1, slope_at_output.T @ kept.h + penalty * w2
