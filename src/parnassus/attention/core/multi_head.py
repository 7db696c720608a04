"""Multi-head attention with queries of one sequence and keys and values of another (Diehl sec. 2.2)."""

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from parnassus.attention.core.dot_product import attention_weights, fused_attention
from parnassus.attention.core.self_attention import join_heads, split_heads
from parnassus.attention.fast.row_product import RowLinear
from parnassus.errors import check_at_least_one


class AttentionWidths(NamedTuple):
    """Widths of the inputs (queries, keys, values) and of the output.

    >>> MultiHeadAttention(AttentionWidths(query=8, key=6, value=4, output=8), heads=2).heads
    2
    """

    query: int
    key: int
    value: int
    output: int


class KeyValueHeads(NamedTuple):
    """Projected keys and values of every head, computed once for any number of queries.

    >>> KeyValueHeads(torch.zeros(1, 2, 3, 8), torch.zeros(1, 2, 3, 8)).keys.shape
    torch.Size([1, 2, 3, 8])
    """

    keys: Float[Tensor, "batch heads keys key_width"]
    values: Float[Tensor, "batch heads keys value_width"]


class MultiHeadAttention(nn.Module):
    """[head_1 … head_h] W^O + b, head_i = softmax(Q W_i^Q (K W_i^K)ᵀ · scale) V W_i^V (Diehl sec. 2.2).

    Each head has queries and keys of `key_width` and values of `value_width`. For cross-attention keys and values are
    both the other sequence (book sec. 10.1.1). `scale` is 1/√key_width by default; the notes have 1. `dropout` applies,
    in training, to the weights and to the output.

    >>> layer = MultiHeadAttention(AttentionWidths(query=8, key=6, value=4, output=8), heads=2)
    >>> layer(torch.zeros(1, 3, 8), torch.zeros(1, 5, 6), torch.zeros(1, 5, 4)).shape
    torch.Size([1, 3, 8])
    """

    def __init__(
        self,
        widths: AttentionWidths,
        heads: int,
        *,
        key_width: int | None = None,
        value_width: int | None = None,
        bias: bool = True,
        scale: float | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_at_least_one(heads=heads)
        key_width = widths.query // heads if key_width is None else key_width
        value_width = key_width if value_width is None else value_width
        if min(*widths, key_width, value_width) < 1:
            raise ValueError(
                f"widths must be at least 1; got {widths}, key_width={key_width}, value_width={value_width}"
            )
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must satisfy 0 ≤ dropout < 1; got dropout={dropout}")
        self.heads, self.scale, self.dropout = heads, scale, dropout
        self.query = RowLinear(widths.query, heads * key_width, bias=bias)
        self.key = RowLinear(widths.key, heads * key_width, bias=bias)
        self.value = RowLinear(widths.value, heads * value_width, bias=bias)
        self.out_proj = RowLinear(heads * value_width, widths.output, bias=bias)

    def forward(
        self,
        query: Float[Tensor, "batch queries _d_q"],
        key: Float[Tensor, "batch keys _d_k"],
        value: Float[Tensor, "batch keys _d_v"],
        mask: Bool[Tensor, "*mask_batch _queries keys"] | None = None,
    ) -> Float[Tensor, "batch queries out"]:
        return self.attend(query, self.project_key_value(key, value), mask)

    def project_key_value(
        self, key: Float[Tensor, "batch keys _d_k"], value: Float[Tensor, "batch keys _d_v"]
    ) -> KeyValueHeads:
        """Keys and values of every head: computed once and reused for queries that arrive one by one."""
        return KeyValueHeads(split_heads(self.key(key), self.heads), split_heads(self.value(value), self.heads))

    def attend(
        self,
        query: Float[Tensor, "batch queries _d_q"],
        memory: KeyValueHeads,
        mask: Bool[Tensor, "*mask_batch _queries keys"] | None = None,
    ) -> Float[Tensor, "batch queries out"]:
        """Attention of the queries to projected keys and values."""
        mask = None if mask is None else mask.unsqueeze(-3)  # the same for all heads
        dropout = self.dropout if self.training else 0.0
        query_heads = split_heads(self.query(query), self.heads)
        heads = fused_attention(query_heads, memory.keys, memory.values, mask, scale=self.scale, dropout=dropout)
        return functional.dropout(self.out_proj(join_heads(heads)), dropout)

    def weights(
        self,
        query: Float[Tensor, "batch queries _d_q"],
        key: Float[Tensor, "batch keys _d_k"],
        mask: Bool[Tensor, "*mask_batch _queries keys"] | None = None,
    ) -> Float[Tensor, "batch heads queries keys"]:
        """The attention weights of each head, which do not depend on the values."""
        mask = None if mask is None else mask.unsqueeze(-3)
        query_heads, key_heads = (split_heads(x, self.heads) for x in (self.query(query), self.key(key)))
        return attention_weights(query_heads, key_heads, mask, scale=self.scale)


def cross_attention(
    width: int, heads: int, *, memory: int | None = None, bias: bool = True, dropout: float = 0.0
) -> MultiHeadAttention:
    """Attention from a sequence of `width` to one of width `memory`, by default the same (book sec. 10.1.1)."""
    if heads < 1 or width % heads:
        raise ValueError(f"width must be a multiple of heads; got width={width}, heads={heads}")
    memory = width if memory is None else memory
    return MultiHeadAttention(AttentionWidths(width, memory, memory, width), heads, bias=bias, dropout=dropout)
