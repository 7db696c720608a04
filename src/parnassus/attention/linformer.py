"""Linformer: keys and values shrunk along time by a learned map, so that scores are n × k (Wang et al. 2020)."""

from math import sqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from parnassus.attention.cache import Memory
from parnassus.attention.dot_product import attend, attention_weights, without_hidden
from parnassus.attention.self_attention import SelfAttention, join_heads


def linformer_attention(
    query: Float[Tensor, "*batch queries width"],
    key: Float[Tensor, "*batch keys width"],
    value: Float[Tensor, "*batch keys out"],
    shrink_keys: Float[Tensor, "kept keys"],
    shrink_values: Float[Tensor, "kept keys"],
) -> Float[Tensor, "*batch queries out"]:
    """softmax(Q (E K)ᵀ / √width) F V with E, F of shape kept × keys: time and memory O(n · kept) (Diehl sec. 4.1).

    Every kept row is a mixture of all keys, those of the future too: there is no causal Linformer.
    """
    return attend(query, shrink_keys @ key, shrink_values @ value)


class LinformerSelfAttention(SelfAttention):
    """Self-attention to `kept` mixtures of at most `length` places; E and F are learned and shared by the heads.

    A shorter sequence uses the first columns of E and F. Hidden keys and their values count as 0 in the mixtures.
    """

    def __init__(self, width: int, heads: int, *, length: int, kept: int, bias: bool = True) -> None:
        super().__init__(width, heads, bias=bias)
        if not 1 <= kept <= length:
            raise ValueError(
                f"the kept mixtures must number between 1 and the length; got kept={kept}, length={length}"
            )
        self.shrink_keys = nn.Parameter(torch.randn(kept, length) / sqrt(length))
        self.shrink_values = nn.Parameter(torch.randn(kept, length) / sqrt(length))

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        mask: Bool[Tensor, "*mask_batch _time keys"] | None = None,
        cache: Memory | None = None,
    ) -> Float[Tensor, "batch time width"]:
        if cache is not None:
            raise ValueError("Linformer mixes all places before it looks, so it cannot read on from a cache")
        if mask is not None and mask.shape[-2] != 1:
            raise ValueError(f"Linformer can hide a key from all queries only: a (…, 1, keys) mask; got {mask.shape}")
        query, key, value = self.project(x)
        if mask is not None:
            key, value = (without_hidden(x, mask.unsqueeze(-3)) for x in (key, value))
        answer: Tensor = self.answer(join_heads(linformer_attention(query, key, value, *self._shrinking(x.shape[1]))))
        return answer

    def weights(
        self, x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "*mask_batch _time keys"] | None = None
    ) -> Float[Tensor, "batch heads time time"]:
        """softmax(Q (E K)ᵀ/√d) F: how much of each value reaches each place; it may be negative, as F may."""
        query, key, _ = self.project(x)
        shrink_keys, shrink_values = self._shrinking(x.shape[1])
        if mask is None:
            return attention_weights(query, shrink_keys @ key) @ shrink_values
        seen = mask.unsqueeze(-3)
        return attention_weights(query, shrink_keys @ without_hidden(key, seen)) @ shrink_values * seen

    def _shrinking(self, time: int) -> tuple[Tensor, Tensor]:
        length = self.shrink_keys.shape[1]
        if time > length:
            raise ValueError(f"this Linformer reads at most {length} places; got {time}")
        return self.shrink_keys[:, :time], self.shrink_values[:, :time]
