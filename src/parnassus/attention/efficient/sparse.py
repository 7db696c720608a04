"""Sparse attention: each query attends to few keys, by a fixed pattern (Diehl sec. 4)."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from parnassus.attention.core.cache import LayerCache
from parnassus.attention.core.dot_product import fused_attention
from parnassus.attention.core.self_attention import SelfAttention, join_heads
from parnassus.errors import check_at_least_one


def band_mask(length: int, reach: int) -> Bool[Tensor, "{length} {length}"]:
    """|i − j| ≤ reach: a sliding window, n (2 reach + 1) − reach (reach + 1) pairs (Diehl sec. 4)."""
    check_at_least_one(reach=reach)
    return _distance(length).abs() <= reach


def dilated_mask(length: int, reach: int, dilation: int) -> Bool[Tensor, "{length} {length}"]:
    """Neighbours at distances 0, ±dilation, …, ±reach · dilation: as many as in a band, over a longer range."""
    check_at_least_one(reach=reach, dilation=dilation)
    distance = _distance(length)
    return (distance.abs() <= reach * dilation) & (distance % dilation == 0)


def strided_mask(length: int, stride: int) -> Bool[Tensor, "{length} {length}"]:
    """Distances below the stride and all multiples of the stride (Child et al. 2019).

    With stride ≈ √n each query attends to O(√n) keys, and two layers connect every query with every key.
    """
    check_at_least_one(stride=stride)
    distance = _distance(length)
    return (distance.abs() < stride) | (distance % stride == 0)


def block_mask(length: int, size: int) -> Bool[Tensor, "{length} {length}"]:
    """Positions attend to their own block; the last block may be shorter."""
    check_at_least_one(size=size)
    block = torch.arange(length) // size
    return block[:, None] == block


def global_mask(length: int, positions: Sequence[int]) -> Bool[Tensor, "{length} {length}"]:
    """These positions attend to all and all attend to them, so that two layers connect any pair (Diehl sec. 4)."""
    if not all(0 <= position < length for position in positions):
        raise ValueError(f"positions must lie between 0 and {length - 1}; got {list(positions)}")
    is_global = torch.zeros(length, dtype=torch.bool)
    is_global[list(positions)] = True
    return is_global[:, None] | is_global


def random_mask(length: int, keys: int, *, generator: torch.Generator | None = None) -> Bool[Tensor, "n n"]:
    """Each query attends to `keys` keys, sampled without replacement (Diehl sec. 4)."""
    if not 1 <= keys <= length:
        raise ValueError(f"keys must lie between 1 and length={length}; got keys={keys}")
    indices = torch.rand(length, length, generator=generator).argsort(-1)[:, :keys]
    return torch.zeros(length, length, dtype=torch.bool).scatter_(1, indices, value=True)


def count_pairs(mask: Bool[Tensor, "*batch queries keys"]) -> Int[Tensor, "*batch"]:
    """Number of visible query-key pairs; queries · keys without a mask."""
    return mask.sum((-2, -1))


def layers_until_connected(mask: Bool[Tensor, "n n"]) -> int | None:
    """Number of layers after which every position depends on every other; None if they are never connected."""
    adjacent = mask | torch.eye(len(mask), dtype=torch.bool, device=mask.device)  # residual connections
    reachable, layers = adjacent, 1
    while not bool(reachable.all()):
        extended = reachable.float() @ adjacent.float() > 0
        if torch.equal(extended, reachable):
            return None
        reachable, layers = extended, layers + 1
    return layers


def local_attention(
    query: Float[Tensor, "*batch time width"],
    key: Float[Tensor, "*batch time width"],
    value: Float[Tensor, "*batch time out"],
    reach: int,
    *,
    causal: bool = False,
) -> Float[Tensor, "*batch time out"]:
    """Attention within |i − j| ≤ reach in time and memory O(n · reach), equal to attention under `band_mask`.

    Queries are processed in blocks of `reach`: their keys lie in the same block and its two neighbours, or, if
    `causal`, in the same block and the previous one.
    """
    check_at_least_one(reach=reach)
    time = query.shape[-2]
    size = max(1, min(reach, time))
    blocks = -(-time // size)
    missing, after = blocks * size - time, 0 if causal else size
    window = 2 * size + after  # keys visible to a block
    q, k, v = (x.reshape(-1, time, x.shape[-1]) for x in (query, key, value))
    queries = pad(q, (0, 0, 0, missing)).unflatten(1, (blocks, size))
    keys, values = (pad(x, (0, 0, size, missing + after)).unfold(1, window, size).mT for x in (k, v))

    query_offset = torch.arange(size, device=query.device)[:, None]
    key_offset = torch.arange(-size, window - size, device=query.device)  # both relative to the start of the block
    band = (query_offset - key_offset).abs() <= reach
    band = band & (key_offset <= query_offset) if causal else band
    key_position = key_offset + size * torch.arange(blocks, device=query.device)[:, None, None]
    inside = (key_position >= 0) & (key_position < time)
    output = fused_attention(queries, keys, values, (band & inside)[None])
    return output.flatten(1, 2)[:, :time].reshape(*query.shape[:-1], value.shape[-1])


class LocalSelfAttention(SelfAttention):
    """Sliding-window self-attention |i − j| ≤ reach; the receptive field of L layers is L · reach to each side.

    >>> LocalSelfAttention(16, 2, reach=2)(torch.zeros(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(self, width: int, heads: int, *, reach: int, causal: bool = False, bias: bool = True) -> None:
        super().__init__(width, heads, causal=causal, bias=bias)
        check_at_least_one(reach=reach)
        self.reach = reach

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        mask: Bool[Tensor, "*mask_batch _time keys"] | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "batch time width"]:
        """In blocks; with a mask or a cache, as dense attention under `band_mask`."""
        if mask is None and cache is None:
            heads = local_attention(*self.project(x), self.reach, causal=self.causal)
            output: Tensor = self.out_proj(join_heads(heads))
            return output
        keys = x.shape[1] + (0 if cache is None else cache.count)
        band = band_mask(keys, self.reach)[-x.shape[1] :].to(x.device)
        return super().forward(x, band if mask is None else band & mask, cache)

    def weights(
        self, x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "*mask_batch _time keys"] | None = None
    ) -> Float[Tensor, "batch heads time time"]:
        band = band_mask(x.shape[1], self.reach).to(x.device)
        return super().weights(x, band if mask is None else band & mask)


def _distance(length: int) -> Int[Tensor, "n n"]:
    position = torch.arange(length)
    return position[:, None] - position
