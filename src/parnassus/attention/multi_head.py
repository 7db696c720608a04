"""Multi-head attention between two sequences: the queries of one, the keys and values of another (Diehl sec. 2.2)."""

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from parnassus.attention.dot_product import attend, attention_weights
from parnassus.attention.one_row import Affine
from parnassus.attention.self_attention import join_heads, split_heads


class Widths(NamedTuple):
    """Of the sequences that come in (queries, keys, values) and of what goes out."""

    query: int
    key: int
    value: int
    output: int


class Offered(NamedTuple):
    """Keys and values of every head, as one sequence offers them to any number of queries."""

    keys: Float[Tensor, "batch heads keys key_width"]
    values: Float[Tensor, "batch heads keys value_width"]


class MultiHeadAttention(nn.Module):
    """[head_1 … head_h] W^O + b, head_i = softmax(Q W_i^Q (K W_i^K)ᵀ · scale) V W_i^V (Diehl sec. 2.2).

    Each head has queries and keys of `key_width` and values of `value_width`. For cross-attention keys and values are
    both the other sequence (book sec. 10.1.1). `scale` is 1/√key_width unless told; the notes have 1. `dropout`, in
    training only, drops weights and parts of the answer.
    """

    def __init__(
        self,
        widths: Widths,
        heads: int,
        *,
        key_width: int | None = None,
        value_width: int | None = None,
        bias: bool = True,
        scale: float | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if heads < 1:
            raise ValueError(f"there must be at least one head; got heads={heads}")
        key_width = widths.query // heads if key_width is None else key_width
        value_width = key_width if value_width is None else value_width
        if min(*widths, key_width, value_width) < 1:
            raise ValueError(
                f"widths must be at least 1; got {widths}, key_width={key_width}, value_width={value_width}"
            )
        if not 0 <= dropout < 1:
            raise ValueError(f"a share to drop must satisfy 0 ≤ dropout < 1; got dropout={dropout}")
        self.heads, self.scale, self.dropout = heads, scale, dropout
        self.query = Affine(widths.query, heads * key_width, bias=bias)
        self.key = Affine(widths.key, heads * key_width, bias=bias)
        self.value = Affine(widths.value, heads * value_width, bias=bias)
        self.answer = Affine(heads * value_width, widths.output, bias=bias)

    def forward(
        self,
        query: Float[Tensor, "batch queries _d_q"],
        key: Float[Tensor, "batch keys _d_k"],
        value: Float[Tensor, "batch keys _d_v"],
        mask: Bool[Tensor, "*mask_batch _queries keys"] | None = None,
    ) -> Float[Tensor, "batch queries out"]:
        return self.ask(query, self.offer(key, value), mask)

    def offer(self, key: Float[Tensor, "batch keys _d_k"], value: Float[Tensor, "batch keys _d_v"]) -> Offered:
        """What the other sequence has to say: worked out once, it answers queries that come one by one."""
        return Offered(split_heads(self.key(key), self.heads), split_heads(self.value(value), self.heads))

    def ask(
        self,
        query: Float[Tensor, "batch queries _d_q"],
        offered: Offered,
        mask: Bool[Tensor, "*mask_batch _queries keys"] | None = None,
    ) -> Float[Tensor, "batch queries out"]:
        """What the queries find there."""
        mask = None if mask is None else mask.unsqueeze(-3)  # the same for all heads
        dropout = self.dropout if self.training else 0.0
        asked = split_heads(self.query(query), self.heads)
        mixed = attend(asked, offered.keys, offered.values, mask, scale=self.scale, dropout=dropout)
        return functional.dropout(self.answer(join_heads(mixed)), dropout)

    def weights(
        self,
        query: Float[Tensor, "batch queries _d_q"],
        key: Float[Tensor, "batch keys _d_k"],
        mask: Bool[Tensor, "*mask_batch _queries keys"] | None = None,
    ) -> Float[Tensor, "batch heads queries keys"]:
        """With which weights each head looks where; the values have no part in it."""
        mask = None if mask is None else mask.unsqueeze(-3)
        asked, offered = (split_heads(x, self.heads) for x in (self.query(query), self.key(key)))
        return attention_weights(asked, offered, mask, scale=self.scale)


def cross_attention(
    width: int, heads: int, *, memory: int | None = None, bias: bool = True, dropout: float = 0.0
) -> MultiHeadAttention:
    """Attention from a sequence of `width` to one of width `memory`, the same unless told (book sec. 10.1.1)."""
    if heads < 1 or width % heads:
        raise ValueError(f"width must be a multiple of heads; got width={width}, heads={heads}")
    memory = width if memory is None else memory
    return MultiHeadAttention(Widths(width, memory, memory, width), heads, bias=bias, dropout=dropout)
