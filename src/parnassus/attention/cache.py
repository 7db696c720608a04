"""Keys and values of the tokens read so far, so that a new token costs one row of attention and not all again."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class Memory(Protocol):
    """What one layer of attention remembers of the tokens read so far; each row is a sequence of its own."""

    count: int

    def rows(self, index: Int[Tensor, " kept"]) -> "Memory":
        """The memories of these rows in this order, as a copy."""
        ...


class KeyValues:
    """The keys and values of one layer, written into place as tokens come."""

    def __init__(
        self,
        keys: Float[Tensor, "batch heads room width"],
        values: Float[Tensor, "batch heads room width"],
        count: int = 0,
    ) -> None:
        self.keys, self.values, self.count = keys, values, count

    @classmethod
    def empty(cls, like: Float[Tensor, "batch heads _time width"], room: int) -> "KeyValues":
        """Room for `room` tokens with keys like these."""
        shape = (*like.shape[:2], room, like.shape[3])
        return cls(like.new_empty(shape), like.new_empty(shape))

    def append(
        self, keys: Float[Tensor, "batch heads time width"], values: Float[Tensor, "batch heads time width"]
    ) -> tuple[Float[Tensor, "batch heads seen width"], Float[Tensor, "batch heads seen width"]]:
        """Remember these too; returns all keys and values so far."""
        end = self.count + keys.shape[2]
        if end > self.keys.shape[2]:
            raise ValueError(f"the window holds {self.keys.shape[2]} tokens; reading on would make {end}")
        self.keys.narrow(2, self.count, keys.shape[2]).copy_(keys)  # quicker than an assignment by slices
        self.values.narrow(2, self.count, keys.shape[2]).copy_(values)
        self.count = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def rows(self, index: Int[Tensor, " kept"]) -> "KeyValues":
        return KeyValues(self.keys[index], self.values[index], self.count)


@dataclass(frozen=True)
class Cache:
    """What a stack of attention layers remembers; a `State` of parnassus.text."""

    layers: tuple[Memory, ...]

    @property
    def count(self) -> int:
        """How many tokens were read."""
        return self.layers[0].count

    @torch.no_grad()
    def rows(self, index: Int[Tensor, " kept"]) -> "Cache":
        return Cache(tuple(layer.rows(index) for layer in self.layers))
