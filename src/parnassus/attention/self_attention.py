"""Multi-head self-attention: a sequence asks itself, in several ways at once (book sec. 10.1, Diehl sec. 2.2)."""

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from parnassus.attention.cache import KeyValues, Memory
from parnassus.attention.dot_product import attend, attention_weights
from parnassus.attention.head_positions import HeadPositions
from parnassus.attention.masks import causal_mask
from parnassus.attention.one_row import Affine


def split_heads(x: Float[Tensor, "batch time width"], heads: int) -> Float[Tensor, "batch {heads} time part"]:
    """The width cut into as many parts as there are heads."""
    batch, time, width = x.shape
    return x.view(batch, time, heads, width // heads).transpose(1, 2)


def join_heads(x: Float[Tensor, "batch heads time part"]) -> Float[Tensor, "batch time width"]:
    """The heads beside each other at each place in time, not stacked in time as (Diehl sec. 2.2) prints it."""
    return x.transpose(1, 2).flatten(-2)


class SelfAttention(nn.Module):
    """[head_1(X) … head_h(X)] W^O + b, head_i(X) = softmax(Q_i K_iᵀ / √k) V_i (Diehl sec. 2.2, book eqs. 10.1-10.5).

    Q_i, K_i and V_i are affine in X, k = width / heads. One that is `causal` sees nothing of the future; it can read on
    from a cache. `positions` tells the heads where things stand. `dropout`, in training only, drops weights and parts
    of the answer, as GPT-2 does.
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
            raise ValueError(f"a share to drop must satisfy 0 ≤ dropout < 1; got dropout={dropout}")
        self.heads, self.causal, self.dropout = heads, causal, dropout
        self.positions = positions
        self.ask = Affine(width, 3 * width, bias=bias)
        self.answer = Affine(width, width, bias=bias)

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        mask: Bool[Tensor, "*mask_batch _time keys"] | None = None,
        cache: Memory | None = None,
    ) -> Float[Tensor, "batch time width"]:
        """What each place finds; keys and values go into the cache, and those that are there already are seen too."""
        query, key, value = self.project(x, 0 if cache is None else cache.count)
        if cache is not None:
            if not isinstance(cache, KeyValues):
                raise TypeError(f"self-attention reads on from KeyValues; got {type(cache).__name__}")
            key, value = cache.append(key, value)
        bias = None if self.positions is None else self.positions.bias(query, key.shape[2])
        mask = None if mask is None else mask.unsqueeze(-3)  # the same for all heads
        dropout = self.dropout if self.training else 0.0
        mixed = attend(query, key, value, mask, bias=bias, causal=self.causal, dropout=dropout)
        answer: Tensor = self.answer(join_heads(mixed))
        return functional.dropout(answer, dropout) if dropout else answer

    def project(
        self, x: Float[Tensor, "batch time width"], start: int = 0
    ) -> tuple[
        Float[Tensor, "batch heads time part"],
        Float[Tensor, "batch heads time part"],
        Float[Tensor, "batch heads time part"],
    ]:
        """Queries, keys and values of each head, queries and keys turned by their places."""
        batch, time, width = x.shape
        parts = self.ask(x).view(batch, time, 3, self.heads, width // self.heads).unbind(2)
        query, key, value = (part.transpose(1, 2) for part in parts)
        if self.positions is not None:
            query, key = self.positions.turn(query, start), self.positions.turn(key, start)
        return query, key, value

    def remember(self, batch: int, room: int) -> Memory:
        """An empty memory of `batch` sequences of up to `room` tokens, to be handed in as `cache`."""
        weight = self.ask.weight
        return KeyValues.empty(weight.new_empty(batch, self.heads, 0, weight.shape[1] // self.heads), room)

    def weights(
        self, x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "*mask_batch _time keys"] | None = None
    ) -> Float[Tensor, "batch heads time time"]:
        """With which weights each head looks where: for looking at, not for training."""
        query, key, _ = self.project(x)
        bias = None if self.positions is None else self.positions.bias(query, key.shape[2])
        mask = None if mask is None else mask.unsqueeze(-3)
        if self.causal:
            past = causal_mask(x.shape[1], device=x.device)
            mask = past if mask is None else past & mask
        return attention_weights(query, key, mask, bias=bias)
