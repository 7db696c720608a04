"""Noise levels σ_1 < … < σ_T for score matching at several scales (book sec. 13.2.7).

Level 0 is the smallest, as step 0 of a `Schedule` is next to the data.
"""

from math import log

import torch
from jaxtyping import Float
from torch import Tensor


def geometric_levels(count: int, sigma_min: float, sigma_max: float) -> Float[Tensor, " count"]:
    """Levels σ_1 < … < σ_T in geometric progression (Song and Ermon 2019).

    Neighbouring smoothed densities then overlap equally at every scale.
    """
    if count < 1 or not 0 < sigma_min <= sigma_max:
        raise ValueError(
            "count ≥ 1 and 0 < sigma_min ≤ sigma_max must hold; "
            f"got count={count}, sigma_min={sigma_min}, sigma_max={sigma_max}"
        )
    return torch.linspace(log(sigma_min), log(sigma_max), count, dtype=torch.float64).exp()


def largest_distance(x: Float[Tensor, "count *event"]) -> float:
    """The largest distance between two examples, a suitable largest level (Song and Ermon 2020)."""
    if len(x) < 2:
        raise ValueError(f"x must hold at least 2 examples; got {len(x)}")
    rows = x.flatten(1)
    return float(torch.stack([torch.cdist(part, rows).max() for part in rows.split(1_000)]).max())


def alpha_bar_from_levels(levels: Float[Tensor, " levels"]) -> Float[Tensor, " levels"]:
    """ᾱ_t = 1/(1 + σ_t²), for which x_t = (x_0 + σ_t ε)/√(1 + σ_t²) in the discrete chain."""
    return 1 / (1 + levels.square())


def check_levels(levels: Float[Tensor, " levels"]) -> None:
    """Raise a ValueError unless the levels are positive and increase strictly."""
    if not len(levels) or not bool((levels > 0).all()) or bool((levels[1:] <= levels[:-1]).any()):
        raise ValueError(f"levels must be positive and increase strictly; got levels={levels.tolist()}")
