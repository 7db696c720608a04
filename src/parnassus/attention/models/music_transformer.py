"""The Music Transformer: a causal transformer with relative attention (book sec. 10.1.2)."""

from torch import nn

from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.models.block import Block, feed_forward
from parnassus.attention.models.gpt import LanguageModel, initialise_gpt2
from parnassus.attention.positions.relative import RelativePositions
from parnassus.layers.token_embedding import TokenEmbedding


def music_transformer(
    vocabulary: int, window: int, *, width: int = 128, heads: int = 4, depth: int = 4, dropout: float = 0.0
) -> LanguageModel:
    """A decoder-only transformer with relative attention in every block (Huang et al. 2019; book sec. 10.1.2).

    Scores depend on distances only, so that learned patterns apply to every bar of a piece.
    """
    blocks = [
        Block(
            SelfAttention(
                width,
                heads,
                causal=True,
                positions=RelativePositions(heads, width // heads, window),
                dropout=dropout,
            ),
            feed_forward(width, dropout=dropout),
            norm=lambda: nn.LayerNorm(width),
        )
        for _ in range(depth)
    ]
    return initialise_gpt2(LanguageModel(TokenEmbedding(vocabulary, width), blocks, window=window))
