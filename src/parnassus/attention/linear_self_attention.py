"""Layers of linear attention: what they remember is sums, and so does not grow with the text (Diehl sec. 4.1)."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.attention.cache import Memory
from parnassus.attention.linear import Features, Sums, elu_features, kernel_weights, mix, recall, shown
from parnassus.attention.self_attention import SelfAttention, join_heads


class RunningSums:
    """The sums of one layer, brought up to date as tokens come; what `KeyValues` is to exact attention."""

    def __init__(self, sums: Sums | None = None, count: int = 0) -> None:
        self.sums, self.count = sums, count

    def rows(self, index: Int[Tensor, " kept"]) -> "RunningSums":
        if self.sums is None:
            return RunningSums()
        return RunningSums(Sums(self.sums.values[index], self.sums.normaliser[index]), self.count)

    def recall(
        self,
        asked: Float[Tensor, "*batch time features"],
        offered: Float[Tensor, "*batch time features"],
        value: Float[Tensor, "*batch time out"],
        *,
        chunk: int = 64,
    ) -> Float[Tensor, "*batch time out"]:
        """What new tokens find in these sums and in each other; they are remembered too."""
        mixed, self.sums = recall(asked, offered, value, self.sums, chunk=chunk)
        self.count += value.shape[-2]
        return mixed


class FeatureAttention(SelfAttention, ABC):
    """Self-attention with weights ∝ ⟨φ(q), φ(k)⟩ for the φ of `lifted`: its memory is sums (Diehl sec. 4.1)."""

    @abstractmethod
    def lifted(self, x: Float[Tensor, "*batch time part"]) -> Float[Tensor, "*batch time features"]:
        """φ of queries or keys."""

    def remember(self, batch: int, room: int) -> RunningSums:  # noqa: ARG002 - as SelfAttention has it
        """Nothing yet; whatever comes, it takes no more room than one matrix a head."""
        return RunningSums()

    def sums(self, cache: Memory | None) -> RunningSums | None:
        """The memory that was handed in; TypeError where it is none to read on from."""
        if cache is not None and not (isinstance(cache, RunningSums) and self.causal):
            raise TypeError(f"causal linear attention reads on from RunningSums; got {type(cache).__name__}")
        return cache

    def weights(
        self, x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "*mask_batch _time keys"] | None = None
    ) -> Float[Tensor, "batch heads time time"]:
        """The weights that the linear form never holds; a causal layer sees no future."""
        query, key, _ = self.project(x)
        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device)
        seen = seen.tril() if self.causal else seen
        return kernel_weights(query, key, self.lifted, seen if mask is None else seen & mask.unsqueeze(-3))


class LinearSelfAttention(FeatureAttention):
    """Self-attention with weights ∝ ⟨φ(q), φ(k)⟩: a transformer that is a recurrent network (Diehl sec. 4.1).

    Trained in parallel, read on with a state that does not grow (Katharopoulos et al. 2020). Only whole keys can be
    hidden: a mask must be the same for all queries.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        features: Features = elu_features,
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
        cache: Memory | None = None,
    ) -> Float[Tensor, "batch time width"]:
        sums, visible = self.sums(cache) or RunningSums(), mask_of_keys(mask)
        query, key, value = self.project(x)
        asked, offered, value = self.lifted(query), shown(self.lifted(key), visible), shown(value, visible)
        mixed = sums.recall(asked, offered, value, chunk=self.chunk) if self.causal else mix(asked, offered, value)
        answer: Tensor = self.answer(join_heads(mixed))
        return answer

    def lifted(self, x: Float[Tensor, "*batch time part"]) -> Float[Tensor, "*batch time features"]:
        return self.features(x)


def mask_of_keys(mask: Bool[Tensor, "*batch queries keys"] | None) -> Bool[Tensor, "*batch 1 keys"] | None:
    """A mask over keys alone, for all heads: what the first query sees, which must be what all see."""
    if mask is None:
        return None
    if mask.shape[-2] != 1 and not bool((mask == mask[..., :1, :]).all()):
        raise ValueError(f"linear attention can hide a key from all queries or from none; got a {mask.shape} mask")
    return mask[..., :1, :]
