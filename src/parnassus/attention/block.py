"""The blocks that transformers are stacks of: attention, then a dense network at each place (book sec. 10.1)."""

from collections.abc import Callable
from typing import TypeAlias

from jaxtyping import Bool, Float
from torch import Tensor, nn

from parnassus.attention.cache import Memory
from parnassus.attention.multi_head import MultiHeadAttention, Offered
from parnassus.attention.one_row import Affine
from parnassus.attention.self_attention import SelfAttention

Map: TypeAlias = Callable[[Tensor], Tensor]
Arrangement: TypeAlias = Callable[[Tensor, nn.Module, Map], Tensor]
"""How a sublayer, its norm and the residual connection stand to each other."""


def pre_norm(x: Tensor, norm: nn.Module, sublayer: Map) -> Tensor:
    """The sum x + F(norm(x)): the residual stream itself is never normalised, which makes deep stacks easy to train."""
    return x + sublayer(norm(x))


def post_norm(x: Tensor, norm: nn.Module, sublayer: Map) -> Tensor:
    """norm(x + F(x)), as Vaswani et al. (2017) have it (book sec. 10.1)."""
    normed: Tensor = norm(x + sublayer(x))
    return normed


def feed_forward(
    width: int, hidden: int | None = None, *, activation: Callable[[], nn.Module] = nn.ReLU, dropout: float = 0.0
) -> nn.Sequential:
    """FFN(x) = W₂ σ(W₁ x + b₁) + b₂ at each place; one activation, between two affine maps (book sec. 10.1)."""
    hidden = 4 * width if hidden is None else hidden
    layers = [Affine(width, hidden), activation(), Affine(hidden, width)]
    return nn.Sequential(*layers, *([nn.Dropout(dropout)] if dropout else []))


class Block(nn.Module):
    """Self-attention, then a dense network, each with a norm and a residual connection (book sec. 10.1)."""

    def __init__(
        self,
        attention: SelfAttention,
        dense: nn.Module,
        *,
        norm: Callable[[], nn.Module],
        arrange: Arrangement = pre_norm,
    ) -> None:
        super().__init__()
        self.attention, self.dense = attention, dense
        self.norms = nn.ModuleList([norm(), norm()])
        self.arrange = arrange

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        mask: Bool[Tensor, "*mask_batch _time keys"] | None = None,
        cache: Memory | None = None,
    ) -> Float[Tensor, "batch time width"]:
        first, second = self.norms
        x = self.arrange(x, first, lambda h: self.attention(h, mask, cache))
        return self.arrange(x, second, self.dense)


class DecoderBlock(nn.Module):
    """Self-attention, attention to another sequence, then a dense network (book sec. 10.1.1)."""

    def __init__(
        self,
        attention: SelfAttention,
        cross: MultiHeadAttention,
        dense: nn.Module,
        *,
        norm: Callable[[], nn.Module],
        arrange: Arrangement = pre_norm,
    ) -> None:
        super().__init__()
        self.attention, self.cross, self.dense = attention, cross, dense
        self.norms = nn.ModuleList([norm(), norm(), norm()])
        self.arrange = arrange

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        memory: Float[Tensor, "batch source _memory_width"],
        mask: Bool[Tensor, "*mask_batch _time keys"] | None = None,
        memory_mask: Bool[Tensor, "*memory_batch _target source"] | None = None,
        cache: Memory | None = None,
    ) -> Float[Tensor, "batch time width"]:
        """`mask` is of this sequence, `memory_mask` of the other: its padding is hidden, its future is not."""
        return self.read(x, self.cross.offer(memory, memory), mask, memory_mask, cache)

    def read(
        self,
        x: Float[Tensor, "batch time width"],
        offered: Offered,
        mask: Bool[Tensor, "*mask_batch _time keys"] | None = None,
        memory_mask: Bool[Tensor, "*memory_batch _target source"] | None = None,
        cache: Memory | None = None,
    ) -> Float[Tensor, "batch time width"]:
        """The same, with the keys and values of the other sequence worked out before."""
        first, second, third = self.norms
        x = self.arrange(x, first, lambda h: self.attention(h, mask, cache))
        x = self.arrange(x, second, lambda h: self.cross.ask(h, offered, memory_mask))
        return self.arrange(x, third, self.dense)
