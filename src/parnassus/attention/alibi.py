"""ALiBi: no positions at all, only a penalty that grows with the distance (Press et al. 2022)."""

from math import log2

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.attention.head_positions import Unturned


def alibi_slopes(heads: int) -> Float[Tensor, " {heads}"]:
    """2^(−8i/h) for i = 1 … h: each head forgets at its own rate (Press et al. 2022).

    Where h is not a power of 2, the slopes of the next smaller one come first, then every second one of the next
    larger, so that none is used twice.
    """
    if heads < 1:
        raise ValueError(f"there must be at least one head; got heads={heads}")
    whole = 2 ** int(log2(heads))
    slopes = _geometric(whole)
    return slopes if whole == heads else torch.cat([slopes, _geometric(2 * whole)[0::2][: heads - whole]])


def alibi_bias(
    slopes: Float[Tensor, " heads"], queries: int, keys: int | None = None
) -> Float[Tensor, "heads {queries} keys"]:
    """b_{mn} = −slope |m − n|, where the queries are the last of the keys."""
    keys = queries if keys is None else keys
    if keys < queries:
        raise ValueError(f"the queries are the last of the keys, so keys ≥ queries; got {queries} queries, {keys} keys")
    places = torch.arange(keys, dtype=slopes.dtype, device=slopes.device)
    distance = (places[keys - queries :, None] - places).abs()
    return -slopes[:, None, None] * distance


class Alibi(Unturned):
    """softmax(q_m · k_n / √d − slope |m − n|): positions for heads with nothing to learn and no longest sequence.

    The law of softmax makes −slope (m − n) and +slope n the same for a causal head.
    """

    slopes: Tensor

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.register_buffer("slopes", alibi_slopes(heads), persistent=False)

    def bias(
        self, query: Float[Tensor, "batch heads queries width"], keys: int
    ) -> Float[Tensor, "1 heads queries {keys}"]:
        if query.shape[1] != len(self.slopes):
            raise ValueError(f"these are slopes for {len(self.slopes)} heads; got {query.shape[1]}")
        return alibi_bias(self.slopes, query.shape[2], keys).to(query.dtype)[None]


def _geometric(heads: int) -> Tensor:
    return 2.0 ** (-8.0 * torch.arange(1, heads + 1, dtype=torch.float32) / heads)
