"""Step sizes for stochastic approximation, by number of updates (Robbins and Monro 1951).

Averages of noisy samples converge where Σ α_n = ∞ and Σ α_n² < ∞.
"""

from collections.abc import Callable
from typing import TypeAlias

from jaxtyping import Float
from torch import Tensor

StepSize: TypeAlias = Callable[[Float[Tensor, " count"]], Float[Tensor, " count"]]
"""From n = 1, 2, …, the number of updates of an entry including this one, to α_n."""


def polynomial_step_size(power: float = 0.8) -> StepSize:
    """α_n = n^{−p} with ½ < p ≤ 1, which satisfies both conditions; p = 1 gives the mean of all samples."""
    if not 0.5 < power <= 1:
        raise ValueError(f"power must satisfy ½ < p ≤ 1 for convergence; got power={power}")
    return lambda count: count.pow(-power)


def constant_step_size(alpha: float) -> StepSize:
    """α_n = α: does not converge, but keeps adapting."""
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha must satisfy 0 < α ≤ 1; got alpha={alpha}")
    return lambda count: count.new_full(count.shape, alpha)
