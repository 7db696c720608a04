"""Four ways to converge, each by a number that tends to zero (Diehl thm. 5.7).

Paths hold an outcome a row and X_1, X_2, … along it; `limit` is X for the same outcomes.

    almost surely or in Lᵖ  ⇒  in probability  ⇒  in distribution,   and Lᵖ ⇒ L^q for p ≥ q
"""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.laws import Law


def deviation_probability(
    paths: Float[Tensor, "outcomes steps"], limit: Float[Tensor, " outcomes"], *, tolerance: float
) -> Float[Tensor, " steps"]:
    """P[|X_n − X| > ε], which tends to 0 for every ε > 0 exactly if X_n → X in probability (Diehl sec. 5)."""
    return _beyond(_distances(paths, limit), tolerance)


def later_deviation_probability(
    paths: Float[Tensor, "outcomes steps"], limit: Float[Tensor, " outcomes"], *, tolerance: float
) -> Float[Tensor, " steps"]:
    """P[sup_{m≥n} |X_m − X| > ε], which tends to 0 for every ε > 0 exactly if X_n → X almost surely (Diehl sec. 5).

    The supremum is over the steps at hand: near their end it says little.
    """
    return _beyond(_distances(paths, limit).flip(1).cummax(1).values.flip(1), tolerance)


def lp_error(
    paths: Float[Tensor, "outcomes steps"], limit: Float[Tensor, " outcomes"], *, order: float
) -> Float[Tensor, " steps"]:
    """E|X_n − X|ᵖ with p = `order`, which tends to 0 exactly if X_n → X in Lᵖ (Diehl sec. 5)."""
    if not order >= 1:
        raise ValueError(f"convergence in Lᵖ is defined for p ≥ 1; got order={order}")
    return _distances(paths, limit).pow(order).mean(0)


def levy_distance(first: Law, second: Law, *, halvings: int = 50) -> Float[Tensor, ""]:
    """The Lévy distance of two laws on numbers: it tends to 0 exactly for convergence in distribution (Diehl sec. 5).

        L(F, G) = least ε ≥ 0 with F(x − ε) − ε ≤ G(x) ≤ F(x + ε) + ε for all x

    It needs to be looked at only where F or G jump; ε is found by bisection between 0 and 1.
    """
    low, high = first.p.new_zeros(()), first.p.new_ones(())
    f, g = first.cdf(first.values), second.cdf(second.values)
    rounding = 4 * max(len(f), len(g)) * torch.finfo(f.dtype).eps
    for _ in range(halvings):
        epsilon = (low + high) / 2
        below = f <= second.cdf(first.values + epsilon) + epsilon + rounding  # F(x) ≤ G(x + ε) + ε where F jumps
        above = g <= first.cdf(second.values + epsilon) + epsilon + rounding  # and the other way round
        if bool(below.all() and above.all()):
            high = epsilon
        else:
            low = epsilon
    return high


def _distances(paths: Float[Tensor, "outcomes steps"], limit: Float[Tensor, " outcomes"]) -> Tensor:
    return (paths - limit[:, None]).abs()


def _beyond(distances: Float[Tensor, "outcomes steps"], tolerance: float) -> Float[Tensor, " steps"]:
    if not tolerance > 0:
        raise ValueError(f"the tolerance ε must be positive; got tolerance={tolerance}")
    return (distances > tolerance).to(distances.dtype).mean(0)
