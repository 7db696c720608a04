"""Relative attention: scores with a learned vector for every distance (book sec. 10.1).

Computed directly, S_{mn} = ⟨q_m, e_{m−n}⟩ needs a vector for each pair of positions, T² d entries; skewing needs only
the T vectors of the table (Huang et al. 2019, Music Transformer).
"""

from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.attention.core.masks import check_enough_keys
from parnassus.attention.positions.head_positions import BiasPositions


def skew(by_distance: Float[Tensor, "*batch queries keys"]) -> Float[Tensor, "*batch queries keys"]:
    """Reindexes scores from columns by distance (longest first, 0 last) to columns by key.

    Row i shifts left by queries − 1 − i columns, by padding one column of zeros and reshaping, without a gather.
    Entries of future keys are 0. The queries are aligned with the last keys.
    """
    queries, keys = by_distance.shape[-2:]
    check_enough_keys(queries, keys)
    shifted: Tensor = nn.functional.pad(by_distance, (1, 0)).flatten(-2)[..., queries:].unflatten(-1, (queries, keys))
    return shifted.tril(keys - queries)


def relative_scores(
    query: Float[Tensor, "*batch heads queries width"], table: Float[Tensor, "heads distances width"], keys: int
) -> Float[Tensor, "*batch heads queries {keys}"]:
    """S_{mn} = ⟨q_m, e_{m−n}⟩ for n ≤ m, by skewing Q Eᵀ (Huang et al. 2019, sec. 3.4.1).

    Row r of the table belongs to distance r; longer distances share the last row (clipping, Shaw et al. 2018).
    """
    distances = torch.arange(keys - 1, -1, -1, device=table.device).clamp(max=table.shape[1] - 1)
    return skew(query @ table[:, distances].mT)


def explicit_relative_scores(
    query: Float[Tensor, "*batch heads queries width"], table: Float[Tensor, "heads distances width"], keys: int
) -> Float[Tensor, "*batch heads queries {keys}"]:
    """`relative_scores` from a vector for every pair of positions, T² d entries (Shaw et al. 2018); a reference."""
    positions = torch.arange(keys, device=table.device)
    distance = positions[keys - query.shape[-2] :, None] - positions
    pairs = table[:, distance.clamp(0, table.shape[1] - 1)]
    return torch.einsum("...hqd,hqkd->...hqk", query, pairs).masked_fill(distance < 0, 0.0)


class RelativePositions(BiasPositions):
    """softmax((Q Kᵀ + S_rel) / √d): scores that depend on positions by the distance m − n only (book sec. 10.1).

    For causal heads; each has `distances` vectors, for the distances 0 … distances − 1, the last also for longer ones.

    >>> SelfAttention(16, 2, positions=RelativePositions(2, 8, 4))(torch.zeros(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(self, heads: int, width: int, distances: int) -> None:
        super().__init__()
        if min(heads, width, distances) < 1:
            raise ValueError(f"heads, width and distances must be at least 1; got {heads=}, {width=}, {distances=}")
        self.table = nn.Parameter(torch.randn(heads, distances, width) * width**-0.5)

    def bias(
        self, query: Float[Tensor, "batch heads queries width"], keys: int
    ) -> Float[Tensor, "batch heads queries {keys}"]:
        heads, _, width = self.table.shape
        if query.shape[1] != heads or query.shape[-1] != width:
            raise ValueError(
                f"the query must have {heads} heads of width {width}; got {query.shape[1]} of width {query.shape[-1]}"
            )
        scores: Tensor = relative_scores(query, self.table, keys)
        return scores / sqrt(width)
