"""Four modes of convergence of random variables, each by a quantity that converges to zero (Diehl thm. 5.7).

Paths hold one outcome per row and X_1, X_2, … along it; `limit` is X for the same outcomes.

    almost surely or in Lᵖ  ⇒  in probability  ⇒  in distribution,   and Lᵖ ⇒ L^q for p ≥ q
"""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_at_least_one, check_positive
from parnassus.probability.distributions.discrete import DiscreteDistribution


def deviation_probability(
    paths: Float[Tensor, "outcomes steps"], limit: Float[Tensor, " outcomes"], *, tolerance: float
) -> Float[Tensor, " steps"]:
    """P[|X_n − X| > ε], which converges to 0 for every ε > 0 if and only if X_n → X in probability (Diehl sec. 5)."""
    return _fraction_beyond(_distances(paths, limit), tolerance)


def tail_deviation_probability(
    paths: Float[Tensor, "outcomes steps"], limit: Float[Tensor, " outcomes"], *, tolerance: float
) -> Float[Tensor, " steps"]:
    """P[sup_{m≥n} |X_m − X| > ε], which converges to 0 for every ε > 0 iff X_n → X almost surely (Diehl sec. 5).

    The supremum is over the given steps, so the values near the last step are not informative.
    """
    return _fraction_beyond(_distances(paths, limit).flip(1).cummax(1).values.flip(1), tolerance)


def lp_error(
    paths: Float[Tensor, "outcomes steps"], limit: Float[Tensor, " outcomes"], *, order: float
) -> Float[Tensor, " steps"]:
    """E|X_n − X|ᵖ with p = `order`, which converges to 0 if and only if X_n → X in Lᵖ (Diehl sec. 5)."""
    check_at_least_one(order=order)
    return _distances(paths, limit).pow(order).mean(0)


def levy_distance(
    first: DiscreteDistribution, second: DiscreteDistribution, *, bisections: int = 50
) -> Float[Tensor, ""]:
    """The Lévy distance of two distributions on ℝ, which metrises convergence in distribution (Diehl sec. 5).

        L(F, G) = min ε ≥ 0 with F(x − ε) − ε ≤ G(x) ≤ F(x + ε) + ε for all x

    It suffices to check the jumps of F and G; ε is found by bisection between 0 and 1.
    """
    low, high = first.p.new_zeros(()), first.p.new_ones(())
    f, g = first.cdf(first.values), second.cdf(second.values)
    rounding = 4 * max(len(f), len(g)) * torch.finfo(f.dtype).eps
    for _ in range(bisections):
        epsilon = (low + high) / 2
        below = f <= second.cdf(first.values + epsilon) + epsilon + rounding  # F(x) ≤ G(x + ε) + ε at the jumps of F
        above = g <= first.cdf(second.values + epsilon) + epsilon + rounding  # and with F and G exchanged
        if bool(below.all() and above.all()):
            high = epsilon
        else:
            low = epsilon
    return high


def _distances(paths: Float[Tensor, "outcomes steps"], limit: Float[Tensor, " outcomes"]) -> Tensor:
    return (paths - limit[:, None]).abs()


def _fraction_beyond(distances: Float[Tensor, "outcomes steps"], tolerance: float) -> Float[Tensor, " steps"]:
    check_positive(tolerance=tolerance)
    return (distances > tolerance).to(distances.dtype).mean(0)
