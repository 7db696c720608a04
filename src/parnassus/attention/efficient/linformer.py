"""Linformer: keys and values projected along time by learned maps, with n × k scores (Wang et al. 2020)."""

from math import sqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from parnassus.attention.core.cache import LayerCache
from parnassus.attention.core.dot_product import attention_weights, fused_attention, zero_masked_keys
from parnassus.attention.core.self_attention import SelfAttention, join_heads


def linformer_attention(
    query: Float[Tensor, "*batch queries width"],
    key: Float[Tensor, "*batch keys width"],
    value: Float[Tensor, "*batch keys out"],
    key_projection: Float[Tensor, "rank keys"],
    value_projection: Float[Tensor, "rank keys"],
) -> Float[Tensor, "*batch queries out"]:
    """softmax(Q (E K)ᵀ / √width) F V with E, F of shape rank × keys: time and memory O(n · rank) (Diehl sec. 4.1).

    Every projected key mixes all keys, future ones included, so there is no causal Linformer.
    """
    return fused_attention(query, key_projection @ key, value_projection @ value)


class LinformerSelfAttention(SelfAttention):
    """Self-attention to `rank` projected keys of sequences up to `length`; E and F are learned and shared by the heads.

    A shorter sequence uses the first columns of E and F. Masked keys and values enter the projections as 0.

    >>> LinformerSelfAttention(16, 2, length=8, rank=4)(torch.zeros(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(self, width: int, heads: int, *, length: int, rank: int, bias: bool = True) -> None:
        super().__init__(width, heads, bias=bias)
        if not 1 <= rank <= length:
            raise ValueError(f"rank must lie between 1 and length; got rank={rank}, length={length}")
        self.key_projection = nn.Parameter(torch.randn(rank, length) / sqrt(length))
        self.value_projection = nn.Parameter(torch.randn(rank, length) / sqrt(length))

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        mask: Bool[Tensor, "*mask_batch _time keys"] | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "batch time width"]:
        if cache is not None:
            raise ValueError("Linformer is not causal and cannot decode from a cache")
        if mask is not None and mask.shape[-2] != 1:
            raise ValueError(f"a mask for Linformer must have the shape (…, 1, keys); got {tuple(mask.shape)}")
        query, key, value = self.project(x)
        if mask is not None:
            key, value = (zero_masked_keys(x, mask.unsqueeze(-3)) for x in (key, value))
        heads = linformer_attention(query, key, value, *self._projections(x.shape[1]))
        output: Tensor = self.out_proj(join_heads(heads))
        return output

    def weights(
        self, x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "*mask_batch _time keys"] | None = None
    ) -> Float[Tensor, "batch heads time time"]:
        """softmax(Q (E K)ᵀ/√d) F, the effective weight of each value; negative where F is."""
        query, key, _ = self.project(x)
        key_projection, value_projection = self._projections(x.shape[1])
        if mask is None:
            return attention_weights(query, key_projection @ key) @ value_projection
        visible = mask.unsqueeze(-3)
        return attention_weights(query, key_projection @ zero_masked_keys(key, visible)) @ value_projection * visible

    def _projections(self, time: int) -> tuple[Tensor, Tensor]:
        """E and F for a sequence of this length."""
        length = self.key_projection.shape[1]
        if time > length:
            raise ValueError(f"a sequence must have at most length={length} tokens; got {time}")
        return self.key_projection[:, :time], self.value_projection[:, :time]
