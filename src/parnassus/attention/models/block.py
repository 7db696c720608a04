"""Transformer blocks: attention and a feed-forward network with residual connections (book sec. 10.1)."""

from collections.abc import Callable
from typing import TypeAlias

from jaxtyping import Bool, Float
from torch import Tensor, nn

from parnassus.attention.core.cache import LayerCache
from parnassus.attention.core.multi_head import KeyValueHeads, MultiHeadAttention
from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.fast.row_product import RowLinear

Sublayer: TypeAlias = Callable[[Tensor], Tensor]
ResidualConnection: TypeAlias = Callable[[Tensor, nn.Module, Sublayer], Tensor]
"""residual(x, norm, sublayer): `pre_norm` or `post_norm`."""


def pre_norm(x: Tensor, norm: nn.Module, sublayer: Sublayer) -> Tensor:
    """The sum x + F(norm(x)): the residual stream is not normalised, which makes deep stacks easy to train."""
    return x + sublayer(norm(x))


def post_norm(x: Tensor, norm: nn.Module, sublayer: Sublayer) -> Tensor:
    """norm(x + F(x)), as in Vaswani et al. (2017) (book sec. 10.1)."""
    normed: Tensor = norm(x + sublayer(x))
    return normed


def feed_forward(
    width: int, hidden: int | None = None, *, activation: Callable[[], nn.Module] = nn.ReLU, dropout: float = 0.0
) -> nn.Sequential:
    """FFN(x) = W₂ σ(W₁ x + b₁) + b₂ at each position; `hidden` is 4 · width by default (book sec. 10.1)."""
    hidden = 4 * width if hidden is None else hidden
    layers = [RowLinear(width, hidden), activation(), RowLinear(hidden, width)]
    return nn.Sequential(*layers, *([nn.Dropout(dropout)] if dropout else []))


class Block(nn.Module):
    """Self-attention, then a feed-forward network, each with a norm and a residual connection (book sec. 10.1).

    >>> block = Block(SelfAttention(16, 2), feed_forward(16), norm=lambda: nn.LayerNorm(16))
    >>> block(torch.zeros(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(
        self,
        attention: SelfAttention,
        dense: nn.Module,
        *,
        norm: Callable[[], nn.Module],
        residual: ResidualConnection = pre_norm,
    ) -> None:
        super().__init__()
        self.attention, self.dense = attention, dense
        self.norms = nn.ModuleList([norm(), norm()])
        self.residual = residual

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        mask: Bool[Tensor, "*mask_batch _time keys"] | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "batch time width"]:
        first, second = self.norms
        x = self.residual(x, first, lambda h: self.attention(h, mask, cache))
        return self.residual(x, second, self.dense)


class DecoderBlock(nn.Module):
    """Self-attention, cross-attention, then a feed-forward network (book sec. 10.1.1).

    >>> cross = MultiHeadAttention(AttentionWidths(16, 16, 16, 16), 2)
    >>> own = SelfAttention(16, 2, causal=True)
    >>> block = DecoderBlock(own, cross, feed_forward(16), norm=lambda: nn.LayerNorm(16))
    >>> block(torch.zeros(1, 5, 16), torch.zeros(1, 3, 16)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(
        self,
        attention: SelfAttention,
        cross: MultiHeadAttention,
        dense: nn.Module,
        *,
        norm: Callable[[], nn.Module],
        residual: ResidualConnection = pre_norm,
    ) -> None:
        super().__init__()
        self.attention, self.cross, self.dense = attention, cross, dense
        self.norms = nn.ModuleList([norm(), norm(), norm()])
        self.residual = residual

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        memory: Float[Tensor, "batch source _memory_width"],
        mask: Bool[Tensor, "*mask_batch _time keys"] | None = None,
        memory_mask: Bool[Tensor, "*memory_batch _target source"] | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "batch time width"]:
        """`mask` applies to this sequence, `memory_mask` to the other, whose padding it hides."""
        return self.attend(x, self.cross.project_key_value(memory, memory), mask, memory_mask, cache)

    def attend(
        self,
        x: Float[Tensor, "batch time width"],
        memory: KeyValueHeads,
        mask: Bool[Tensor, "*mask_batch _time keys"] | None = None,
        memory_mask: Bool[Tensor, "*memory_batch _target source"] | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "batch time width"]:
        """The output for precomputed keys and values of the other sequence."""
        first, second, third = self.norms
        x = self.residual(x, first, lambda h: self.attention(h, mask, cache))
        x = self.residual(x, second, lambda h: self.cross.attend(h, memory, memory_mask))
        return self.residual(x, third, self.dense)
