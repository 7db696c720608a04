"""Self-attention layers with linear attention, whose cache has constant size (Diehl sec. 4.1)."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.attention.core.cache import LayerCache
from parnassus.attention.core.masks import zero_masked
from parnassus.attention.core.self_attention import SelfAttention, join_heads
from parnassus.attention.efficient.linear_attention import (
    FeatureMap,
    KeyValueSums,
    causal_feature_attention,
    elu_features,
    feature_attention,
    linear_attention_weights,
)


class RunningSumsCache:
    """The cache of a linear-attention layer: running sums, updated as tokens are read; compare `KeyValueCache`.

    >>> RunningSumsCache().count
    0
    """

    def __init__(self, sums: KeyValueSums | None = None, count: int = 0) -> None:
        self.sums, self.count = sums, count

    def rows(self, index: Int[Tensor, " kept"]) -> "RunningSumsCache":
        if self.sums is None:
            return RunningSumsCache()
        return RunningSumsCache(KeyValueSums(self.sums.values[index], self.sums.normaliser[index]), self.count)

    def attend(
        self,
        query_features: Float[Tensor, "*batch time features"],
        key_features: Float[Tensor, "*batch time features"],
        value: Float[Tensor, "*batch time out"],
        *,
        chunk: int = 64,
    ) -> Float[Tensor, "*batch time out"]:
        """Attention of new tokens to the stored sums and to each other; the sums are updated."""
        output, self.sums = causal_feature_attention(query_features, key_features, value, self.sums, chunk=chunk)
        self.count += value.shape[-2]
        return output


class FeatureAttention(SelfAttention, ABC):
    """Self-attention with weights ∝ ⟨φ(q), φ(k)⟩, where φ is `feature_map`; its cache holds sums (Diehl sec. 4.1)."""

    @abstractmethod
    def feature_map(self, x: Float[Tensor, "*batch time part"]) -> Float[Tensor, "*batch time features"]:
        """φ of queries or keys."""

    def empty_cache(self, batch: int, capacity: int) -> RunningSumsCache:  # noqa: ARG002 - the interface of SelfAttention
        """An empty cache; its size is one matrix per head, for any number of tokens."""
        return RunningSumsCache()

    def running_sums(self, cache: LayerCache | None) -> RunningSumsCache | None:
        """The given cache; TypeError if it is not a RunningSumsCache or the layer is not causal."""
        if cache is not None and not (isinstance(cache, RunningSumsCache) and self.causal):
            raise TypeError(
                f"a cache needs a causal layer and must be a RunningSumsCache; got causal={self.causal}, "
                f"{type(cache).__name__}"
            )
        return cache

    def weights(
        self, x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "*mask_batch _time keys"] | None = None
    ) -> Float[Tensor, "batch heads time time"]:
        """The attention weights, which `forward` never forms; lower triangular for a causal layer."""
        query, key, _ = self.project(x)
        visible = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device)
        visible = visible.tril() if self.causal else visible
        visible = visible if mask is None else visible & mask.unsqueeze(-3)
        return linear_attention_weights(query, key, self.feature_map, visible)


class LinearSelfAttention(FeatureAttention):
    """Self-attention with weights ∝ ⟨φ(q), φ(k)⟩, which is also a recurrent network (Diehl sec. 4.1).

    Trained in parallel, decoded with a state of constant size (Katharopoulos et al. 2020). A mask must be the same for
    all queries.

    >>> LinearSelfAttention(16, 2, causal=True)(torch.zeros(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        features: FeatureMap = elu_features,
        causal: bool = False,
        bias: bool = True,
        chunk: int = 64,
    ) -> None:
        super().__init__(width, heads, causal=causal, bias=bias)
        self.features, self.chunk = features, chunk

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        mask: Bool[Tensor, "*mask_batch _time keys"] | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "batch time width"]:
        sums, visible = self.running_sums(cache) or RunningSumsCache(), key_mask(mask)
        query, key, value = self.project(x)
        phi_q, phi_k = self.feature_map(query), zero_masked(self.feature_map(key), visible)
        value = zero_masked(value, visible)
        heads = (
            sums.attend(phi_q, phi_k, value, chunk=self.chunk)
            if self.causal
            else feature_attention(phi_q, phi_k, value)
        )
        output: Tensor = self.out_proj(join_heads(heads))
        return output

    def feature_map(self, x: Float[Tensor, "*batch time part"]) -> Float[Tensor, "*batch time features"]:
        return self.features(x)


def key_mask(mask: Bool[Tensor, "*batch queries keys"] | None) -> Bool[Tensor, "*batch 1 keys"] | None:
    """The mask of the keys for all heads; it must be the same for all queries."""
    if mask is None:
        return None
    if mask.shape[-2] != 1 and not bool((mask == mask[..., :1, :]).all()):
        raise ValueError(f"the mask must be the same for all queries; got a mask of shape {tuple(mask.shape)}")
    return mask[..., :1, :]
