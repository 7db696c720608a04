"""Caches for autoregressive decoding: keys and values of earlier tokens are not computed again."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class LayerCache(Protocol):
    """The cache of one attention layer for the tokens read so far; each row is a sequence."""

    count: int

    def rows(self, index: Int[Tensor, " kept"]) -> "LayerCache":
        """A copy of the selected rows, in this order."""
        ...


class KeyValueCache:
    """The keys and values of one layer, in preallocated tensors that are filled in place.

    >>> keys = torch.zeros(1, 2, 3, 8)
    >>> KeyValueCache.empty(keys, 10).count
    0
    """

    def __init__(
        self,
        keys: Float[Tensor, "batch heads capacity width"],
        values: Float[Tensor, "batch heads capacity width"],
        count: int = 0,
    ) -> None:
        self.keys, self.values, self.count = keys, values, count

    @classmethod
    def empty(cls, like: Float[Tensor, "batch heads _time width"], capacity: int) -> "KeyValueCache":
        """A cache for up to `capacity` tokens, with the batch, heads, width and dtype of `like`."""
        shape = (*like.shape[:2], capacity, like.shape[3])
        return cls(like.new_empty(shape), like.new_empty(shape))

    def append(
        self, keys: Float[Tensor, "batch heads time width"], values: Float[Tensor, "batch heads time width"]
    ) -> tuple[Float[Tensor, "batch heads stored width"], Float[Tensor, "batch heads stored width"]]:
        """Append these keys and values; returns all stored so far."""
        end = self.count + keys.shape[2]
        if end > self.keys.shape[2]:
            raise ValueError(f"the cache holds at most {self.keys.shape[2]} tokens; got {end}")
        self.keys.narrow(2, self.count, keys.shape[2]).copy_(keys)  # faster than slice assignment
        self.values.narrow(2, self.count, keys.shape[2]).copy_(values)
        self.count = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def rows(self, index: Int[Tensor, " kept"]) -> "KeyValueCache":
        return KeyValueCache(self.keys[index], self.values[index], self.count)


@dataclass(frozen=True)
class Cache:
    """The caches of a stack of attention layers; a `State` of parnassus.text.

    >>> cache = gpt(100, 8, width=16).empty_cache(1)
    >>> cache.count
    0
    """

    layers: tuple[LayerCache, ...]

    @property
    def count(self) -> int:
        """Number of tokens read."""
        return self.layers[0].count

    @torch.no_grad()
    def rows(self, index: Int[Tensor, " kept"]) -> "Cache":
        return Cache(tuple(layer.rows(index) for layer in self.layers))
