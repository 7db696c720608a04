"""Multi-head self-attention, optionally causal and with cached decoding (book sec. 10.1, Diehl sec. 2.2)."""

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from parnassus.attention.core.cache import KeyValueCache, LayerCache
from parnassus.attention.core.dot_product import attention_weights, fused_attention
from parnassus.attention.core.masks import causal_mask
from parnassus.attention.fast.row_product import RowLinear
from parnassus.attention.positions.head_positions import HeadPositions


def split_heads(x: Float[Tensor, "batch time width"], heads: int) -> Float[Tensor, "batch {heads} time part"]:
    """The width split into equal parts, one per head."""
    batch, time, width = x.shape
    return x.view(batch, time, heads, width // heads).transpose(1, 2)


def join_heads(x: Float[Tensor, "batch heads time part"]) -> Float[Tensor, "batch time width"]:
    """The heads concatenated at each time step, not stacked along time as printed in (Diehl sec. 2.2)."""
    return x.transpose(1, 2).flatten(-2)


class SelfAttention(nn.Module):
    """[head_1(X) … head_h(X)] W^O + b, head_i(X) = softmax(Q_i K_iᵀ / √k) V_i (Diehl sec. 2.2, book eqs. 10.1-10.5).

    Q_i, K_i and V_i are affine in X, k = width / heads. A `causal` layer masks the future and can decode from a cache.
    `positions` supplies positional information to the heads. `dropout` applies, in training, to the weights and to the
    output, as in GPT-2.

    >>> layer = SelfAttention(16, 2, causal=True)
    >>> layer(torch.zeros(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        causal: bool = False,
        positions: HeadPositions | None = None,
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise ValueError(f"width must be a multiple of heads; got width={width}, heads={heads}")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must satisfy 0 ≤ dropout < 1; got dropout={dropout}")
        self.heads, self.causal, self.dropout = heads, causal, dropout
        self.positions = positions
        self.in_proj = RowLinear(width, 3 * width, bias=bias)
        self.out_proj = RowLinear(width, width, bias=bias)

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        mask: Bool[Tensor, "*mask_batch _time keys"] | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "batch time width"]:
        """The output at each position; with a cache, keys and values are appended to it and all of them are visible."""
        query, key, value = self.project(x, 0 if cache is None else cache.count)
        if cache is not None:
            if not isinstance(cache, KeyValueCache):
                raise TypeError(f"self-attention needs a KeyValueCache; got {type(cache).__name__}")
            key, value = cache.append(key, value)
        bias = None if self.positions is None else self.positions.bias(query, key.shape[2])
        mask = None if mask is None else mask.unsqueeze(-3)  # the same for all heads
        dropout = self.dropout if self.training else 0.0
        heads = fused_attention(query, key, value, mask, bias=bias, causal=self.causal, dropout=dropout)
        output: Tensor = self.out_proj(join_heads(heads))
        return functional.dropout(output, dropout) if dropout else output

    def project(
        self, x: Float[Tensor, "batch time width"], start: int = 0
    ) -> tuple[
        Float[Tensor, "batch heads time part"],
        Float[Tensor, "batch heads time part"],
        Float[Tensor, "batch heads time part"],
    ]:
        """Queries, keys and values of each head; queries and keys are rotated if `positions` rotates."""
        batch, time, width = x.shape
        parts = self.in_proj(x).view(batch, time, 3, self.heads, width // self.heads).unbind(2)
        query, key, value = (part.transpose(1, 2) for part in parts)
        if self.positions is not None:
            query, key = self.positions.rotate(query, start), self.positions.rotate(key, start)
        return query, key, value

    def empty_cache(self, batch: int, capacity: int) -> LayerCache:
        """An empty cache of `batch` sequences of up to `capacity` tokens, to be passed as `cache`."""
        weight = self.in_proj.weight
        return KeyValueCache.empty(weight.new_empty(batch, self.heads, 0, weight.shape[1] // self.heads), capacity)

    def weights(
        self, x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "*mask_batch _time keys"] | None = None
    ) -> Float[Tensor, "batch heads time time"]:
        """The attention weights of each head, for inspection: they are stored in full."""
        query, key, _ = self.project(x)
        bias = None if self.positions is None else self.positions.bias(query, key.shape[2])
        mask = None if mask is None else mask.unsqueeze(-3)
        if self.causal:
            past = causal_mask(x.shape[1], device=x.device)
            mask = past if mask is None else past & mask
        return attention_weights(query, key, mask, bias=bias)
