"""Relative attention: a learned vector for every distance, which queries meet as they meet keys (book sec. 10.1).

The scores S_{mn} = ⟨q_m, e_{m−n}⟩ need a vector for each pair of places, T² d numbers; skewing gets them from the T
vectors there are (Huang et al. 2019, Music Transformer).
"""

from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.attention.head_positions import Unturned


def skew(by_distance: Float[Tensor, "*batch queries keys"]) -> Float[Tensor, "*batch queries keys"]:
    """From columns by distance, the longest first and 0 last, to columns by key; the queries are the last of the keys.

    Row i moves left by queries − 1 − i places. A column of zeros in front, and the numbers read on in rows that begin
    later, do so without a copy for each pair. What lies in the future is 0.
    """
    queries, keys = by_distance.shape[-2:]
    if keys < queries:
        raise ValueError(f"the queries are the last of the keys, so keys ≥ queries; got {queries} queries, {keys} keys")
    moved: Tensor = nn.functional.pad(by_distance, (1, 0)).flatten(-2)[..., queries:].unflatten(-1, (queries, keys))
    return moved.tril(keys - queries)


def relative_scores(
    query: Float[Tensor, "*batch heads queries width"], table: Float[Tensor, "heads reach width"], keys: int
) -> Float[Tensor, "*batch heads queries {keys}"]:
    """S_{mn} = ⟨q_m, e_{m−n}⟩ for n ≤ m, by skewing Q Eᵀ (Huang et al. 2019, sec. 3.4.1).

    Row r of the table is for the distance r; all longer ones share the last (clipping, Shaw et al. 2018).
    """
    distances = torch.arange(keys - 1, -1, -1, device=table.device).clamp(max=table.shape[1] - 1)
    return skew(query @ table[:, distances].mT)


def explicit_relative_scores(
    query: Float[Tensor, "*batch heads queries width"], table: Float[Tensor, "heads reach width"], keys: int
) -> Float[Tensor, "*batch heads queries {keys}"]:
    """The same with a vector for every pair of places, T² d numbers (Shaw et al. 2018): to compare with."""
    places = torch.arange(keys, device=table.device)
    distance = places[keys - query.shape[-2] :, None] - places
    pairs = table[:, distance.clamp(0, table.shape[1] - 1)]
    return torch.einsum("...hqd,hqkd->...hqk", query, pairs).masked_fill(distance < 0, 0.0)


class RelativePositions(Unturned):
    """softmax((Q Kᵀ + S_rel) / √d): scores that know the distance m − n and nothing else of places (book sec. 10.1).

    For causal heads; each has `reach` vectors of its own, for the distances 0 … reach − 1 and beyond.
    """

    def __init__(self, heads: int, width: int, reach: int) -> None:
        super().__init__()
        if min(heads, width, reach) < 1:
            raise ValueError(f"heads, width and reach must be at least 1; got {heads=}, {width=}, {reach=}")
        self.table = nn.Parameter(torch.randn(heads, reach, width) * width**-0.5)

    def bias(
        self, query: Float[Tensor, "batch heads queries width"], keys: int
    ) -> Float[Tensor, "batch heads queries {keys}"]:
        heads, _, width = self.table.shape
        if query.shape[1] != heads or query.shape[-1] != width:
            raise ValueError(f"these are {heads} heads of width {width}; got {query.shape[1]} of {query.shape[-1]}")
        scores: Tensor = relative_scores(query, self.table, keys)
        return scores / sqrt(width)
