"""The Music Transformer: a causal transformer whose heads know distances, and no places (book sec. 10.1.2)."""

from torch import nn

from parnassus.attention.block import Block, feed_forward
from parnassus.attention.embedding import TokenEmbedding
from parnassus.attention.gpt import LanguageModel, initialised
from parnassus.attention.relative import RelativePositions
from parnassus.attention.self_attention import SelfAttention


def music_transformer(
    vocabulary: int, window: int, *, width: int = 128, heads: int = 4, depth: int = 4, dropout: float = 0.0
) -> LanguageModel:
    """Decoder-only, with relative attention in every block (Huang et al. 2019; book sec. 10.1.2).

    A motif sounds alike wherever it comes back: what a head has learned of the last bar holds in every bar.
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
    return initialised(LanguageModel(TokenEmbedding(vocabulary, width), blocks, window=window))
