"""The energy distance of two samples: are these points drawn from the law of those? (Székely and Rizzo 2013)."""

import torch
from jaxtyping import Float
from torch import Tensor


def energy_distance(x: Float[Tensor, "count_x dim"], y: Float[Tensor, "count_y dim"]) -> Float[Tensor, ""]:
    """2 E‖X − Y‖ − E‖X − X′‖ − E‖Y − Y′‖ with means over all pairs of rows, equal rows included.

    Never negative, and 0 for equal samples only; two finite samples of one law stay a little above 0. On the line it
    is 2 ∫ (F(t) − G(t))² dt.
    """
    if len(x) == 0 or len(y) == 0:
        raise ValueError(f"a distance of samples needs points in both; got {len(x)} and {len(y)}")
    return 2 * _mean_distance(x, y) - _mean_distance(x, x) - _mean_distance(y, y)


def _mean_distance(x: Tensor, y: Tensor) -> Tensor:
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist").mean()  # products lose the small ones
