"""Step sizes for learning from samples, by how often an entry was updated (Robbins and Monro 1951).

Averages of noise settle on the truth where Σ α_n = ∞ and Σ α_n² < ∞: far enough in all, and ever more quietly.
"""

from collections.abc import Callable
from typing import TypeAlias

from jaxtyping import Float
from torch import Tensor

StepSize: TypeAlias = Callable[[Float[Tensor, " count"]], Float[Tensor, " count"]]
"""From n = 1, 2, …, the number of this update of the entry, to α_n."""


def shrinking(power: float = 0.8) -> StepSize:
    """α_n = n^{−p} with ½ < p ≤ 1, as Robbins and Monro ask; p = 1 is the mean of all that was seen."""
    if not 0.5 < power <= 1:
        raise ValueError(f"steps n^(−p) suffice and settle for ½ < p ≤ 1; got power={power}")
    return lambda count: count.pow(-power)


def constant(rate: float) -> StepSize:
    """α_n = α: it never settles, and never stops learning."""
    if not 0 < rate <= 1:
        raise ValueError(f"a step size must satisfy 0 < α ≤ 1; got rate={rate}")
    return lambda count: count.new_full(count.shape, rate)
