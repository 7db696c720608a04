"""Conditioning mechanisms: concatenation, multiplication, FiLM, cross-attention (book sec. 13.3).

Each is a module (h, tokens) → h with the same interface. A single vector is one token, `embedding[:, None]`; the first
three use the mean of the tokens, attention uses each. All are initialised to the identity in h.
"""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import silu

from parnassus.attention.core.dot_product import fused_attention
from parnassus.attention.core.self_attention import join_heads, split_heads
from parnassus.diffusion.networks.mlp_denoisers import TimeMLP
from parnassus.diffusion.networks.timestep_embedding import sinusoidal_embedding

Mechanism: TypeAlias = Callable[[int, int], nn.Module]
"""(channels of h, width of a token) to a module (h, tokens) → h."""
Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)


class Concatenation(nn.Module):
    """W [h; c] + b at every position, with W initialised to [I 0] (book sec. 13.3).

    >>> Concatenation(channels=4, width=8)(torch.ones(1, 4, 2, 2), torch.zeros(1, 3, 8)).shape
    torch.Size([1, 4, 2, 2])
    """

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.mix = nn.Linear(channels + width, channels)
        with torch.no_grad():
            self.mix.weight.copy_(torch.eye(channels, channels + width))
            self.mix.bias.zero_()

    def forward(
        self, h: Float[Tensor, "batch channels *space"], tokens: Float[Tensor, "batch tokens width"]
    ) -> Float[Tensor, "batch channels *space"]:
        positions = _to_positions(h)
        condition = tokens.mean(1, keepdim=True).expand(-1, positions.shape[1], -1)
        return _to_features(self.mix(torch.cat([positions, condition], dim=2)), h)


class Multiplication(nn.Module):
    """(1 + γ(c)) ⊙ h, a factor per channel, initially 1 (book sec. 13.3).

    >>> Multiplication(channels=4, width=8)(torch.ones(1, 4, 2, 2), torch.zeros(1, 3, 8)).shape
    torch.Size([1, 4, 2, 2])
    """

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.factor = zero_initialise(nn.Linear(width, channels))

    def forward(
        self, h: Float[Tensor, "batch channels *space"], tokens: Float[Tensor, "batch tokens width"]
    ) -> Float[Tensor, "batch channels *space"]:
        return (1 + _over_space(self.factor(tokens.mean(1)), h)) * h


class FiLM(nn.Module):
    """(1 + γ(c)) ⊙ h + β(c), a scale and a shift per channel (book sec. 13.3; Perez et al. 2018).

    >>> FiLM(channels=4, width=8)(torch.ones(1, 4, 2, 2), torch.zeros(1, 3, 8)).shape
    torch.Size([1, 4, 2, 2])
    """

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.affine = zero_initialise(nn.Linear(width, 2 * channels))

    def forward(
        self, h: Float[Tensor, "batch channels *space"], tokens: Float[Tensor, "batch tokens width"]
    ) -> Float[Tensor, "batch channels *space"]:
        gamma, beta = _over_space(self.affine(tokens.mean(1)), h).chunk(2, dim=1)
        return (1 + gamma) * h + beta


class _PositionAttention(nn.Module):
    """The number of heads and the layer norm of attention from the positions of an image."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        if channels % heads:
            raise ValueError(f"channels must be divisible by heads; got channels={channels}, heads={heads}")
        self.heads = heads
        self.norm = nn.LayerNorm(channels)


class CrossAttention(_PositionAttention):
    """h + W_O softmax(Q Kᵀ / √d) V, with W_O initialised to zero (book eq. 13.100).

        Q = φ(h) W_Q,   K = c W_K,   V = c W_V

    φ is a layer norm over the channels. With a single token the output is the same at every position.

    >>> CrossAttention(channels=4, width=8)(torch.ones(1, 4, 2, 2), torch.zeros(1, 3, 8)).shape
    torch.Size([1, 4, 2, 2])
    """

    def __init__(self, channels: int, width: int, *, heads: int = 1) -> None:
        super().__init__(channels, heads)
        self.query = nn.Linear(channels, channels, bias=False)
        self.key, self.value = nn.Linear(width, channels, bias=False), nn.Linear(width, channels, bias=False)
        self.out = zero_initialise(nn.Linear(channels, channels))

    def forward(
        self, h: Float[Tensor, "batch channels *space"], tokens: Float[Tensor, "batch tokens width"]
    ) -> Float[Tensor, "batch channels *space"]:
        query, key, value = self.query(self.norm(_to_positions(h))), self.key(tokens), self.value(tokens)
        return h + _to_features(self.out(multi_head_attention(query, key, value, self.heads)), h)


def multi_head_attention(
    query: Float[Tensor, "batch positions channels"],
    key: Float[Tensor, "batch tokens channels"],
    value: Float[Tensor, "batch tokens channels"],
    heads: int,
) -> Float[Tensor, "batch positions channels"]:
    """Multi-head attention softmax(Q Kᵀ / √d) V (book eq. 13.100)."""
    q, k, v = (split_heads(part, heads) for part in (query, key, value))
    return join_heads(fused_attention(q, k, v))


class SpatialSelfAttention(_PositionAttention):
    """h + W_O softmax(Q Kᵀ / √d) V with queries, keys and values from h (book sec. 13.3.1).

    >>> SpatialSelfAttention(4)(torch.ones(1, 4, 8, 8)).shape
    torch.Size([1, 4, 8, 8])
    """

    def __init__(self, channels: int, *, heads: int = 1) -> None:
        super().__init__(channels, heads)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.out = zero_initialise(nn.Linear(channels, channels))

    def forward(self, h: Float[Tensor, "batch channels *space"]) -> Float[Tensor, "batch channels *space"]:
        query, key, value = self.qkv(self.norm(_to_positions(h))).chunk(3, dim=2)
        return h + _to_features(self.out(multi_head_attention(query, key, value, self.heads)), h)


class ConditionedMLP(nn.Module):
    """A `TimeMLP` with the class as a condition before each of its layers (book sec. 13.3).

    A class is embedded as a sequence of `tokens` learned vectors; label `classes` is the null label. Mechanisms are
    initially the identity, so the network is initially `inner` for every class.

    >>> model = ConditionedMLP(TimeMLP(2, width=16), 10, FiLM)
    >>> model(torch.zeros(5, 2), torch.zeros(5, dtype=torch.int64), torch.arange(5)).shape
    torch.Size([5, 2])
    """

    def __init__(self, inner: TimeMLP, classes: int, mechanism: Mechanism, *, tokens: int = 4) -> None:
        super().__init__()
        if classes < 1 or tokens < 1:
            raise ValueError(f"classes and tokens must be positive; got classes={classes}, tokens={tokens}")
        self.inner, self.null, self.tokens = inner, classes, tokens
        self.label = nn.Embedding(classes + 1, tokens * inner.width)
        self.mechanisms = nn.ModuleList(mechanism(inner.width, inner.width) for _ in inner.layers)

    def forward(
        self, x: Float[Tensor, "batch d"], t: Int[Tensor, " batch"], label: Int[Tensor, " batch"] | None = None
    ) -> Float[Tensor, "batch d"]:
        inner, embedding = self.inner, sinusoidal_embedding(t, self.inner.width).to(x)
        embedded = self.label(torch.full_like(t, self.null) if label is None else label)
        tokens = embedded.unflatten(1, (self.tokens, -1))
        h = inner.proj_in(x)
        for mechanism, time, layer in zip(self.mechanisms, inner.times, inner.layers, strict=True):
            h = mechanism(h, tokens)
            h = h + layer(silu((1 + time(embedding)) * h))
        noise: Tensor = inner.proj_out(silu(h))
        return noise


def zero_initialise(layer: Layer) -> Layer:
    """The layer with weights and biases set to zero."""
    nn.init.zeros_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def _to_positions(h: Tensor) -> Tensor:
    """(batch, channels, *space) to (batch, positions, channels); a vector is one position."""
    return h.reshape(*h.shape[:2], -1).mT


def _to_features(positions: Tensor, like: Tensor) -> Tensor:
    return positions.mT.reshape(like.shape)


def _over_space(values: Tensor, like: Tensor) -> Tensor:
    return values.reshape(*values.shape, *[1] * (like.dim() - 2))
