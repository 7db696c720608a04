"""Four ways to bring a condition into a layer: concatenate, multiply, modulate, attend (book sec. 13.3).

Each is a module that changes features h when told tokens c, and can stand wherever another stood. A single vector is
one token, `code[:, None]`; the first three hear the mean of the tokens, attention hears each. All begin neutral: before
any training h comes out as it went in, and the network is the unconditional one.
"""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import silu

from parnassus.attention.dot_product import attend
from parnassus.attention.self_attention import join_heads, split_heads
from parnassus.diffusion.denoisers import TimeMLP, sinusoidal_embedding

Mechanism: TypeAlias = Callable[[int, int], nn.Module]
"""(channels of h, width of a token) to a module (h, tokens) → h."""
Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)


class Concatenation(nn.Module):
    """W [h; c] + b at every place, where W begins as [I 0] (book sec. 13.3)."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.mix = nn.Linear(channels + width, channels)
        with torch.no_grad():
            self.mix.weight.copy_(torch.eye(channels, channels + width))
            self.mix.bias.zero_()

    def forward(
        self, h: Float[Tensor, "batch channels *space"], tokens: Float[Tensor, "batch tokens width"]
    ) -> Float[Tensor, "batch channels *space"]:
        places = _as_places(h)
        code = tokens.mean(1, keepdim=True).expand(-1, places.shape[1], -1)
        return _as_features(self.mix(torch.cat([places, code], dim=2)), h)


class Multiplication(nn.Module):
    """(1 + γ(c)) ⊙ h: a factor for each channel, 1 at first (book sec. 13.3)."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.factor = zeroed(nn.Linear(width, channels))

    def forward(
        self, h: Float[Tensor, "batch channels *space"], tokens: Float[Tensor, "batch tokens width"]
    ) -> Float[Tensor, "batch channels *space"]:
        return (1 + _over_space(self.factor(tokens.mean(1)), h)) * h


class FiLM(nn.Module):
    """(1 + γ(c)) ⊙ h + β(c): a scale and a shift for each channel (book sec. 13.3; Perez et al. 2018)."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.affine = zeroed(nn.Linear(width, 2 * channels))

    def forward(
        self, h: Float[Tensor, "batch channels *space"], tokens: Float[Tensor, "batch tokens width"]
    ) -> Float[Tensor, "batch channels *space"]:
        gamma, beta = _over_space(self.affine(tokens.mean(1)), h).chunk(2, dim=1)
        return (1 + gamma) * h + beta


class CrossAttention(nn.Module):
    """h + W_O softmax(Q Kᵀ / √d) V: places of h ask, tokens answer, nothing is added at first (book eq. 13.100).

        Q = φ(h) W_Q,   K = c W_K,   V = c W_V

    φ is a layer norm over the channels of a place. With a single token the answer is the same at every place.
    """

    def __init__(self, channels: int, width: int, *, heads: int = 1) -> None:
        super().__init__()
        if channels % heads:
            raise ValueError(f"channels must be a multiple of heads; got channels={channels}, heads={heads}")
        self.heads = heads
        self.norm = nn.LayerNorm(channels)
        self.query = nn.Linear(channels, channels, bias=False)
        self.key, self.value = nn.Linear(width, channels, bias=False), nn.Linear(width, channels, bias=False)
        self.out = zeroed(nn.Linear(channels, channels))

    def forward(
        self, h: Float[Tensor, "batch channels *space"], tokens: Float[Tensor, "batch tokens width"]
    ) -> Float[Tensor, "batch channels *space"]:
        query, key, value = self.query(self.norm(_as_places(h))), self.key(tokens), self.value(tokens)
        return h + _as_features(self.out(attend_in_heads(query, key, value, self.heads)), h)


def attend_in_heads(
    query: Float[Tensor, "batch places channels"],
    key: Float[Tensor, "batch tokens channels"],
    value: Float[Tensor, "batch tokens channels"],
    heads: int,
) -> Float[Tensor, "batch places channels"]:
    """softmax(Q Kᵀ / √d) V in `heads` subspaces of the channels, side by side (book eq. 13.100)."""
    q, k, v = (split_heads(part, heads) for part in (query, key, value))
    return join_heads(attend(q, k, v))


class SelfAttention(nn.Module):
    """h + W_O softmax(Q Kᵀ / √d) V with queries, keys and values all from the places of h (book sec. 13.3.1)."""

    def __init__(self, channels: int, *, heads: int = 1) -> None:
        super().__init__()
        if channels % heads:
            raise ValueError(f"channels must be a multiple of heads; got channels={channels}, heads={heads}")
        self.heads = heads
        self.norm = nn.LayerNorm(channels)
        self.ask = nn.Linear(channels, 3 * channels)
        self.out = zeroed(nn.Linear(channels, channels))

    def forward(self, h: Float[Tensor, "batch channels *space"]) -> Float[Tensor, "batch channels *space"]:
        query, key, value = self.ask(self.norm(_as_places(h))).chunk(3, dim=2)
        return h + _as_features(self.out(attend_in_heads(query, key, value, self.heads)), h)


class ConditionedMLP(nn.Module):
    """A `TimeMLP` that hears the class before each of its layers, in whatever way `mechanism` does (book sec. 13.3).

    A class is a sentence of `tokens` learned vectors, so that attention has something to choose from; class number
    `classes` is the null label. Untrained mechanisms are neutral: it begins as `inner`, whatever the class.
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
        inner, code = self.inner, sinusoidal_embedding(t, self.inner.width).to(x)
        sentence = self.label(torch.full_like(t, self.null) if label is None else label)
        words = sentence.unflatten(1, (self.tokens, -1))
        h = inner.enter(x)
        for told, time, layer in zip(self.mechanisms, inner.times, inner.layers, strict=True):
            h = told(h, words)
            h = h + layer(silu((1 + time(code)) * h))
        noise: Tensor = inner.leave(silu(h))
        return noise


def zeroed(layer: Layer) -> Layer:
    """The same layer with zero weights and biases: silent at first, yet with a gradient to learn from."""
    nn.init.zeros_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def _as_places(h: Tensor) -> Tensor:
    """(batch, channels, *space) to (batch, places, channels); a vector is one place."""
    return h.reshape(*h.shape[:2], -1).mT


def _as_features(places: Tensor, like: Tensor) -> Tensor:
    return places.mT.reshape(like.shape)


def _over_space(values: Tensor, like: Tensor) -> Tensor:
    return values.reshape(*values.shape, *[1] * (like.dim() - 2))
