"""The transformer encoder: bidirectional self-attention over a whole sequence (book sec. 10.1.1)."""

from collections.abc import Sequence

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.models.block import Block, ResidualConnection, feed_forward, post_norm, pre_norm
from parnassus.attention.positions.learned import PositionalEmbedding
from parnassus.layers.token_embedding import TokenEmbedding, initialise_embeddings, padding_mask


class Encoder(nn.Module):
    """z_1 … z_n = f_θ(x_1 … x_n): embedding, blocks, and a norm at the end (book sec. 10.1.1).

    A block is a map (x, mask) → x, such as `Block`. Tokens equal to `padding` are masked, so that the output at other
    positions does not depend on them; None if there is no padding.

    >>> encoder = Encoder(PositionalEmbedding(100, 8, 16), [], norm=nn.LayerNorm(16))
    >>> encoder(torch.tensor([[5, 7, 0]])).shape
    torch.Size([1, 3, 16])
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
            raise ValueError("an encoder is bidirectional: no block may be causal")
        self.embedding, self.blocks, self.norm = embedding, nn.ModuleList(blocks), norm
        self.padding, self.dropout = padding, nn.Dropout(dropout)

    @property
    def vocabulary(self) -> int:
        return self.embedding.tokens.num_embeddings

    @property
    def width(self) -> int:
        return self.embedding.tokens.embedding_dim

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time width"]:
        """A contextual vector for each token."""
        mask = self.mask(tokens)
        x: Tensor = self.dropout(self.embedding(tokens))
        for block in self.blocks:
            x = block(x, mask)
        normed: Tensor = self.norm(x)
        return normed

    def mask(self, tokens: Int[Tensor, "batch time"]) -> Bool[Tensor, "batch 1 time"] | None:
        """True at tokens that are not padding; None if there is no padding."""
        return None if self.padding is None else padding_mask(tokens, self.padding)

    def mean_pool(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch width"]:
        """The mean of z_t over all tokens that are not padding, one vector per sequence (book sec. 10.1.2)."""
        return masked_mean(self(tokens), self.mask(tokens))


def masked_mean(
    x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "batch 1 time"] | None
) -> Float[Tensor, "batch width"]:
    """The mean over visible positions; zeros if there are none."""
    if mask is None:
        return x.mean(1)
    weight = mask.mT.to(x.dtype)
    return (x * weight).sum(1) / weight.sum(1).clamp_min(1)


def encoder(
    vocabulary: int,
    max_length: int,
    *,
    width: int = 128,
    heads: int = 4,
    depth: int = 2,
    hidden: int | None = None,
    dropout: float = 0.0,
    residual: ResidualConnection = pre_norm,
    padding: int | None = 0,
) -> Encoder:
    """An encoder with learned positions and `depth` equal blocks, pre-norm by default (book sec. 10.1.1).

    With `post_norm` a block is a = LN(x + MHA(x)), y = LN(a + FFN(a)) (Vaswani et al. 2017), without a final norm.
    """
    blocks = [
        Block(
            SelfAttention(width, heads, dropout=dropout),
            feed_forward(width, hidden, dropout=dropout),
            norm=lambda: nn.LayerNorm(width),
            residual=residual,
        )
        for _ in range(depth)
    ]
    embedding = initialise_embeddings(PositionalEmbedding(vocabulary, max_length, width))
    return Encoder(embedding, blocks, norm=last_norm(width, residual), padding=padding, dropout=dropout)


def last_norm(width: int, residual: ResidualConnection) -> nn.Module:
    """The norm after the last block; the identity if each block ends with a norm."""
    return nn.Identity() if residual is post_norm else nn.LayerNorm(width)
