"""Noise levels σ_T > … > σ_1: from a blur that joins all data to one that nobody sees (book sec. 13.2.7).

Level number 0 is the smallest, as step 0 of a `Schedule` is the one next to the data.
"""

from math import log

import torch
from jaxtyping import Float
from torch import Tensor


def geometric_levels(count: int, smallest: float, largest: float) -> Float[Tensor, " count"]:
    """σ_1 < … < σ_T in geometric order, each the same factor above the one before (Song and Ermon 2019).

    Neighbouring blurs then overlap alike at every scale: samples of one level are good starts for the next.
    """
    if count < 1 or not 0 < smallest <= largest:
        raise ValueError(
            f"need count ≥ 1 and 0 < smallest ≤ largest; got count={count}, smallest={smallest}, largest={largest}"
        )
    return torch.linspace(log(smallest), log(largest), count, dtype=torch.float64).exp()


def largest_distance(x: Float[Tensor, "count *event"]) -> float:
    """The largest distance between two examples: under a blur as wide, any leads to any (Song and Ermon 2020)."""
    if len(x) < 2:
        raise ValueError(f"a distance needs two examples; got {len(x)}")
    rows = x.flatten(1)
    return float(torch.stack([torch.cdist(part, rows).max() for part in rows.split(1_000)]).max())


def alpha_bar_of(levels: Float[Tensor, " levels"]) -> Float[Tensor, " levels"]:
    """ᾱ_t = 1/(1 + σ_t²): the chain of diffusion whose x_t is (x_0 + σ_t ε)/√(1 + σ_t²), the same blur made smaller."""
    return 1 / (1 + levels.square())
