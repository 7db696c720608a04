"""Running means, scaled sums and their Kolmogorov distance to the normal distribution (Diehl thm. 5.9)."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_positive

DistributionFunction: TypeAlias = Callable[[Tensor], Tensor]
"""x ↦ P[X ≤ x], elementwise."""


def running_means(draws: Float[Tensor, "*batch count"]) -> Float[Tensor, "*batch count"]:
    """(1/n) Σ_{i≤n} X_i for n = 1, 2, …, which converges to E[X] almost surely if E|X| < ∞ (Diehl thm. 5.9)."""
    return draws.cumsum(-1) / torch.arange(1, draws.shape[-1] + 1, dtype=draws.dtype, device=draws.device)


def scaled_sums(draws: Float[Tensor, "*batch count"]) -> Float[Tensor, "*batch"]:
    """n^(−1/2) Σ_{i≤n} X_i, which converges to N(0, E[X²]) in distribution if E[X] = 0, E[X²] < ∞ (Diehl thm. 5.9)."""
    sums: Tensor = draws.sum(-1) / draws.shape[-1] ** 0.5
    return sums


def kolmogorov_distance(sample: Float[Tensor, " draws"], cdf: DistributionFunction) -> Float[Tensor, ""]:
    """sup_x |F_n(x) − F(x)| between the empirical distribution function and a continuous one (Diehl thm. 5.9).

    F_n is constant between two sample points and F is increasing, so the supremum is attained just before or at a
    sample point. For n samples from F itself it is about 0.87/√n.
    """
    count = len(sample)
    if count == 0:
        raise ValueError("the sample must be non-empty")
    values, steps = cdf(sample.sort().values), torch.arange(count + 1, dtype=sample.dtype, device=sample.device) / count
    return torch.maximum((steps[1:] - values).max(), (values - steps[:-1]).max())


def coin_sum_normal_distance(count: int) -> float:
    """sup_x |P[S_n/√n ≤ x] − Φ(x)| for the sum S_n of n fair signs ±1, exactly (Diehl thm. 5.9).

    S_n = 2B − n with a binomial B; jumps of size √(2/(πn)) limit the decay to 1/√n (Berry 1941).
    """
    check_positive(count=count)
    heads = torch.arange(count + 1, dtype=torch.float64)
    n = torch.tensor(float(count), dtype=torch.float64)
    log_choose = (n + 1).lgamma() - (heads + 1).lgamma() - (n - heads + 1).lgamma()
    cdf = (log_choose + n * torch.tensor(0.5, dtype=torch.float64).log()).exp().cumsum(0)
    normal = torch.special.ndtr((2 * heads - n) / n.sqrt())
    left_limits = torch.cat([cdf.new_zeros(1), cdf[:-1]])
    return float(torch.maximum((cdf - normal).abs(), (left_limits - normal).abs()).max())
