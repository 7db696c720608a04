"""Attention pooling that predicts the German article of an English noun phrase (Diehl sec. 2.2)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.arrays import accepts_arrays
from parnassus.attention.core.attention_maps import attention_maps
from parnassus.attention.core.multi_head import AttentionWidths, MultiHeadAttention
from parnassus.layers import mlp, padding_mask, relu

ARTICLES = ("der", "die", "das")
ARTICLE_OF_NOUN = {
    "dog": "der", "table": "der", "tree": "der", "moon": "der", "spoon": "der", "key": "der", "coat": "der",
    "cat": "die", "sun": "die", "lamp": "die", "flower": "die", "door": "die", "watch": "die",
    "house": "das", "book": "das", "window": "das",
}  # fmt: skip
PHRASE_PARTS = {
    "opening": ("", "we saw", "they want", "she paints", "look at"),
    "determiner": ("the", "my", "this", "every"),
    "adverb": ("", "very", "rather"),
    "adjective": ("old", "small", "red", "quiet", "bright", "heavy", "new"),
    "noun": tuple(ARTICLE_OF_NOUN),
    "ending": ("", "today", "again", "near us", "at night", "over there", "in spring"),
}
"""The parts of a phrase in their order, with all alternatives."""
WORDS = tuple(sorted({word for parts in PHRASE_PARTS.values() for part in parts for word in part.split()}))
MAX_WORDS = 8


class ArticleClassifier(nn.Module):
    """One learned query attends to all words; an MLP classifies the article from the pooled values."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(WORDS) + 1, width)
        self.query = nn.Parameter(torch.zeros(1, 1, width))
        self.attention = MultiHeadAttention(AttentionWidths(width, width, width, width), 1)
        self.output = mlp((width, 32, len(ARTICLES)), activation=relu)

    def forward(self, phrases: Int[Tensor, "batch words"]) -> Float[Tensor, "batch articles"]:
        """Logits of der, die and das."""
        words = self.embedding(phrases)
        query = self.query.expand(len(phrases), -1, -1)
        logits: Tensor = self.output(self.attention(query, words, words, padding_mask(phrases))[:, 0])
        return logits

    @accepts_arrays
    def loss(self, phrases: Int[Tensor, "batch words"], articles: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        """The mean of −log p(article | phrase), in nats."""
        return cross_entropy(self(phrases), articles)

    def weights(self, phrases: Int[Tensor, "batch words"]) -> Float[Tensor, "batch words"]:
        """The attention weight of each word, on the CPU."""
        (weights,) = attention_maps(self, phrases).values()
        return weights[:, 0, 0].cpu()


def known_words(phrase: str) -> list[str]:
    """The words of the vocabulary in a phrase, in lower case."""
    return [word for word in phrase.lower().split() if word in WORDS]


def encode_phrases(phrases: Sequence[str]) -> Int[Tensor, "batch words"]:
    """Word indices from 1, padded with 0 to `MAX_WORDS`."""
    index = {word: position for position, word in enumerate(WORDS, 1)}
    rows = [[index[word] for word in phrase.split()] for phrase in phrases]
    return torch.tensor([row + [0] * (MAX_WORDS - len(row)) for row in rows])
