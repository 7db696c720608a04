"""Sparse attention: each query sees a few keys, by a pattern that is fixed beforehand (Diehl sec. 4)."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from parnassus.attention.cache import Memory
from parnassus.attention.dot_product import attend
from parnassus.attention.self_attention import SelfAttention, join_heads


def band_mask(length: int, reach: int) -> Bool[Tensor, "{length} {length}"]:
    """|i − j| ≤ reach: the neighbours to both sides, n (2 reach + 1) − reach (reach + 1) pairs (Diehl sec. 4)."""
    _demand_positive("reach", reach)
    return _distance(length).abs() <= reach


def dilated_mask(length: int, reach: int, dilation: int) -> Bool[Tensor, "{length} {length}"]:
    """Neighbours at distances 0, ±dilation, …, ±reach · dilation: as many as in a band, over a wider stretch."""
    _demand_positive("reach", reach)
    _demand_positive("dilation", dilation)
    distance = _distance(length)
    return (distance.abs() <= reach * dilation) & (distance % dilation == 0)


def strided_mask(length: int, stride: int) -> Bool[Tensor, "{length} {length}"]:
    """All that are nearer than the stride, and every stride-th key besides (Child et al. 2019).

    With stride ≈ √n each query sees O(√n) keys, and every key is reached from every query in two layers.
    """
    _demand_positive("stride", stride)
    distance = _distance(length)
    return (distance.abs() < stride) | (distance % stride == 0)


def block_mask(length: int, size: int) -> Bool[Tensor, "{length} {length}"]:
    """Places of one block see each other; the last block may be shorter."""
    _demand_positive("size", size)
    block = torch.arange(length) // size
    return block[:, None] == block


def global_mask(length: int, chosen: Sequence[int]) -> Bool[Tensor, "{length} {length}"]:
    """The chosen places see all and are seen by all: two steps lead from anywhere to anywhere (Diehl sec. 4)."""
    if not all(0 <= place < length for place in chosen):
        raise ValueError(f"global places must lie between 0 and {length - 1}; got {list(chosen)}")
    chief = torch.zeros(length, dtype=torch.bool)
    chief[list(chosen)] = True
    return chief[:, None] | chief


def random_mask(length: int, links: int, *, generator: torch.Generator | None = None) -> Bool[Tensor, "n n"]:
    """Each query sees `links` keys drawn at random without repetition (Diehl sec. 4)."""
    if not 1 <= links <= length:
        raise ValueError(f"a query can see between 1 and {length} keys; got links={links}")
    drawn = torch.rand(length, length, generator=generator).argsort(-1)[:, :links]
    return torch.zeros(length, length, dtype=torch.bool).scatter_(1, drawn, value=True)


def pairs(mask: Bool[Tensor, "*batch queries keys"]) -> Int[Tensor, "*batch"]:
    """How many scores the pattern asks for; without one there are queries · keys."""
    return mask.sum((-2, -1))


def steps_to_reach_all(mask: Bool[Tensor, "n n"]) -> int | None:
    """Layers after which every place can have heard of every other; None when some never do."""
    near = mask | torch.eye(len(mask), dtype=torch.bool, device=mask.device)  # a residual connection keeps its own
    heard, layers = near, 1
    while not bool(heard.all()):
        further = heard.float() @ near.float() > 0
        if torch.equal(further, heard):
            return None
        heard, layers = further, layers + 1
    return layers


def local_attention(
    query: Float[Tensor, "*batch time width"],
    key: Float[Tensor, "*batch time width"],
    value: Float[Tensor, "*batch time out"],
    reach: int,
    *,
    causal: bool = False,
) -> Float[Tensor, "*batch time out"]:
    """Attention within |i − j| ≤ reach, in time and memory O(n · reach): equal to exact attention under `band_mask`.

    Queries are taken in blocks of `reach`. All that a block can see lies in itself and its two neighbours, or, where it
    is `causal`, in itself and the one before.
    """
    _demand_positive("reach", reach)
    time = query.shape[-2]
    size = max(1, min(reach, time))
    blocks = -(-time // size)
    spare, after = blocks * size - time, 0 if causal else size
    near = 2 * size + after  # keys that a block may see
    q, k, v = (x.reshape(-1, time, x.shape[-1]) for x in (query, key, value))
    asked = pad(q, (0, 0, 0, spare)).unflatten(1, (blocks, size))
    offered, values = (pad(x, (0, 0, size, spare + after)).unfold(1, near, size).mT for x in (k, v))

    place = torch.arange(size, device=query.device)[:, None]
    other = torch.arange(-size, near - size, device=query.device)  # both counted from where the block begins
    band = (place - other).abs() <= reach
    band = band & (other <= place) if causal else band
    key_place = other + size * torch.arange(blocks, device=query.device)[:, None, None]
    inside = (key_place >= 0) & (key_place < time)
    mixed = attend(asked, offered, values, (band & inside)[None])
    return mixed.flatten(1, 2)[:, :time].reshape(*query.shape[:-1], value.shape[-1])


class LocalSelfAttention(SelfAttention):
    """Self-attention to places at most `reach` away; with L layers a place hears of what is L · reach away."""

    def __init__(self, width: int, heads: int, *, reach: int, causal: bool = False, bias: bool = True) -> None:
        super().__init__(width, heads, causal=causal, bias=bias)
        _demand_positive("reach", reach)
        self.reach = reach

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        mask: Bool[Tensor, "*mask_batch _time keys"] | None = None,
        cache: Memory | None = None,
    ) -> Float[Tensor, "batch time width"]:
        """In blocks; with a mask of one's own or a cache, exact attention with all but the band hidden."""
        if mask is None and cache is None:
            mixed = local_attention(*self.project(x), self.reach, causal=self.causal)
            answer: Tensor = self.answer(join_heads(mixed))
            return answer
        seen = x.shape[1] + (0 if cache is None else cache.count)
        band = band_mask(seen, self.reach)[-x.shape[1] :].to(x.device)
        return super().forward(x, band if mask is None else band & mask, cache)

    def weights(
        self, x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "*mask_batch _time keys"] | None = None
    ) -> Float[Tensor, "batch heads time time"]:
        band = band_mask(x.shape[1], self.reach).to(x.device)
        return super().weights(x, band if mask is None else band & mask)


def _distance(length: int) -> Int[Tensor, "n n"]:
    place = torch.arange(length)
    return place[:, None] - place


def _demand_positive(name: str, size: int) -> None:
    if size < 1:
        raise ValueError(f"a pattern needs {name} ≥ 1; got {name}={size}")
