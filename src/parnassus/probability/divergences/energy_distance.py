"""The energy distance of two samples, a statistic for equality of distributions (Székely and Rizzo 2013)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.arrays import accepts_arrays


@accepts_arrays
def energy_distance(x: Float[Tensor, "count_x dim"], y: Float[Tensor, "count_y dim"]) -> Float[Tensor, ""]:
    """2 E‖X − Y‖ − E‖X − X′‖ − E‖Y − Y′‖ with means over all pairs of rows, the diagonal included.

    Non-negative, and 0 only for equal samples; finite samples of the same distribution give a small positive value. In
    one dimension it equals 2 ∫ (F(t) − G(t))² dt.
    """
    if len(x) == 0 or len(y) == 0:
        raise ValueError(f"both samples must be non-empty; got {len(x)} and {len(y)} points")
    return 2 * _mean_distance(x, y) - _mean_distance(x, x) - _mean_distance(y, y)


def _mean_distance(x: Tensor, y: Tensor) -> Tensor:
    return torch.cdist(
        x, y, compute_mode="donot_use_mm_for_euclid_dist"
    ).mean()  # products lose small distances to rounding
