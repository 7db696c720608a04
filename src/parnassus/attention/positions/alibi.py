"""ALiBi: a penalty on the scores that is linear in the distance (Press et al. 2022)."""

from math import log2

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.attention.core.masks import check_enough_keys
from parnassus.attention.positions.head_positions import BiasPositions
from parnassus.errors import check_at_least_one


def alibi_slopes(heads: int) -> Float[Tensor, " {heads}"]:
    """2^(−8i/h) for i = 1 … h: one slope per head (Press et al. 2022).

    If h is not a power of 2, the slopes for the next smaller power come first, then every second slope for the next
    larger one; all slopes differ.
    """
    check_at_least_one(heads=heads)
    power = 2 ** int(log2(heads))
    slopes = _geometric_slopes(power)
    return slopes if power == heads else torch.cat([slopes, _geometric_slopes(2 * power)[0::2][: heads - power]])


def alibi_bias(
    slopes: Float[Tensor, " heads"], queries: int, keys: int | None = None
) -> Float[Tensor, "heads {queries} keys"]:
    """b_{mn} = −slope |m − n|; the queries are aligned with the last keys."""
    keys = queries if keys is None else keys
    check_enough_keys(queries, keys)
    positions = torch.arange(keys, dtype=slopes.dtype, device=slopes.device)
    distance = (positions[keys - queries :, None] - positions).abs()
    return -slopes[:, None, None] * distance


class Alibi(BiasPositions):
    """softmax(q_m · k_n / √d − slope |m − n|): positions without parameters or a maximum length.

    For a causal head −slope (m − n) and +slope n are equivalent, since softmax is shift-invariant.

    >>> layer = SelfAttention(16, 2, positions=Alibi(2))
    >>> layer(torch.zeros(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    slopes: Tensor

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.register_buffer("slopes", alibi_slopes(heads), persistent=False)

    def bias(
        self, query: Float[Tensor, "batch heads queries width"], keys: int
    ) -> Float[Tensor, "1 heads queries {keys}"]:
        if query.shape[1] != len(self.slopes):
            raise ValueError(f"the query must have {len(self.slopes)} heads; got {query.shape[1]}")
        return alibi_bias(self.slopes, query.shape[2], keys).to(query.dtype)[None]


def _geometric_slopes(heads: int) -> Tensor:
    return 2.0 ** (-8.0 * torch.arange(1, heads + 1, dtype=torch.float32) / heads)
