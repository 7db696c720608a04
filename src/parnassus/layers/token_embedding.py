"""Token embeddings, their initialisation, and the mask of padding tokens (book sec. 10.1.1)."""

from typing import TypeVar

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

Embedding = TypeVar("Embedding", bound=nn.Module)


class TokenEmbedding(nn.Module):
    """A learned vector for each token, without position (book sec. 10.1.1).

    `start` is ignored; it gives this module the signature of a positional embedding.

    >>> TokenEmbedding(100, 16)(torch.tensor([[4, 2, 7]])).shape
    torch.Size([1, 3, 16])
    """

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        if min(vocabulary, width) < 1:
            raise ValueError(f"vocabulary and width must be at least 1; got {vocabulary=}, {width=}")
        self.tokens = nn.Embedding(vocabulary, width)

    def forward(self, tokens: Int[Tensor, "batch time"], start: int = 0) -> Float[Tensor, "batch time width"]:  # noqa: ARG002
        embedded: Tensor = self.tokens(tokens)
        return embedded


def initialise_embeddings(embedding: Embedding) -> Embedding:
    """Initialise its tables from N(0, 1/width), so that a tied output layer starts with logits of order 1."""
    for table in embedding.children():
        if isinstance(table, nn.Embedding):
            nn.init.normal_(table.weight, std=table.embedding_dim**-0.5)
    return embedding


def padding_mask(tokens: Int[Tensor, "batch time"], padding: int = 0) -> Bool[Tensor, "batch 1 time"]:
    """True where a token is not padding; broadcasts over queries (book sec. 10.1.1)."""
    return (tokens != padding).unsqueeze(-2)
