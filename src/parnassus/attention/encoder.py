"""The encoder: a whole sequence read at once, every place seeing every other (book sec. 10.1.1)."""

from collections.abc import Sequence
from typing import TypeVar

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from parnassus.attention.block import Arrangement, Block, feed_forward, post_norm, pre_norm
from parnassus.attention.embedding import PositionalEmbedding, TokenEmbedding
from parnassus.attention.masks import padding_mask
from parnassus.attention.self_attention import SelfAttention

Embedding = TypeVar("Embedding", TokenEmbedding, PositionalEmbedding)


class Encoder(nn.Module):
    """z_1 … z_n = f_θ(x_1 … x_n): embedding, blocks, and a norm at the end (book sec. 10.1.1).

    A block is a map (x, mask) → x, such as `Block`. Tokens equal to `padding` are seen by nobody, so that what the
    others become does not depend on how much filler follows them; None if there is no filler.
    """

    def __init__(
        self,
        embedding: TokenEmbedding | PositionalEmbedding,
        blocks: Sequence[nn.Module],
        *,
        norm: nn.Module,
        padding: int | None = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if any(isinstance(block, Block) and block.attention.causal for block in blocks):
            raise ValueError("an encoder sees both sides of every place: no block may be causal")
        self.embedding, self.blocks, self.norm = embedding, nn.ModuleList(blocks), norm
        self.padding, self.dropout = padding, nn.Dropout(dropout)

    @property
    def vocabulary(self) -> int:
        return self.embedding.tokens.num_embeddings

    @property
    def width(self) -> int:
        return self.embedding.tokens.embedding_dim

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time width"]:
        """A vector for each token that knows all the others."""
        mask = self.mask(tokens)
        x: Tensor = self.dropout(self.embedding(tokens))
        for block in self.blocks:
            x = block(x, mask)
        normed: Tensor = self.norm(x)
        return normed

    def mask(self, tokens: Int[Tensor, "batch time"]) -> Bool[Tensor, "batch 1 time"] | None:
        """Which tokens may be seen: all but the filler."""
        return None if self.padding is None else padding_mask(tokens, self.padding)

    def pooled(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch width"]:
        """One vector for the sequence: the mean of z_t over all tokens that are no filler (book sec. 10.1.2)."""
        return masked_mean(self(tokens), self.mask(tokens))


def masked_mean(
    x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "batch 1 time"] | None
) -> Float[Tensor, "batch width"]:
    """The mean over the places that may be seen; zeros where there are none."""
    if mask is None:
        return x.mean(1)
    seen = mask.mT.to(x.dtype)
    return (x * seen).sum(1) / seen.sum(1).clamp_min(1)


def encoder(
    vocabulary: int,
    places: int,
    *,
    width: int = 128,
    heads: int = 4,
    depth: int = 2,
    hidden: int | None = None,
    dropout: float = 0.0,
    arrange: Arrangement = pre_norm,
    padding: int | None = 0,
) -> Encoder:
    """Learned places and `depth` equal blocks, pre-norm as is usual today (book sec. 10.1.1).

    With `post_norm` a block is Vaswani's a = LN(x + MHA(x)), y = LN(a + FFN(a)), and needs no norm after the last.
    """
    blocks = [
        Block(
            SelfAttention(width, heads, dropout=dropout),
            feed_forward(width, hidden, dropout=dropout),
            norm=lambda: nn.LayerNorm(width),
            arrange=arrange,
        )
        for _ in range(depth)
    ]
    embedding = of_length_one(PositionalEmbedding(vocabulary, places, width))
    return Encoder(embedding, blocks, norm=last_norm(width, arrange), padding=padding, dropout=dropout)


def of_length_one(embedding: Embedding) -> Embedding:
    """Its vectors drawn anew from N(0, 1/width): a last layer that is their transpose begins with logits of size 1."""
    for table in embedding.children():
        if isinstance(table, nn.Embedding):
            nn.init.normal_(table.weight, std=table.embedding_dim**-0.5)
    return embedding


def last_norm(width: int, arrange: Arrangement) -> nn.Module:
    """A norm after the last block, unless each block ends in one already."""
    return nn.Identity() if arrange is post_norm else nn.LayerNorm(width)
