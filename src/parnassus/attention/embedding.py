"""Tokens as vectors, with or without the place at which they stand (book sec. 10.1.1)."""

from jaxtyping import Float, Int
from torch import Tensor, nn


class TokenEmbedding(nn.Module):
    """A learned vector for each token; where it stands is left to the heads, or unknown."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        if min(vocabulary, width) < 1:
            raise ValueError(f"vocabulary and width must be at least 1; got {vocabulary=}, {width=}")
        self.tokens = nn.Embedding(vocabulary, width)

    def forward(self, tokens: Int[Tensor, "batch time"], start: int = 0) -> Float[Tensor, "batch time width"]:  # noqa: ARG002 - as PositionalEmbedding has it
        embedded: Tensor = self.tokens(tokens)
        return embedded


class PositionalEmbedding(nn.Module):
    """Learned vectors for token and place, added: token(x_t) + place(t) (book sec. 10.1.1).

    There are vectors for `places` places and no more; a longer sequence is refused.
    """

    def __init__(self, vocabulary: int, places: int, width: int) -> None:
        super().__init__()
        if min(vocabulary, places, width) < 1:
            raise ValueError(f"vocabulary, places and width must be at least 1; got {vocabulary=}, {places=}, {width=}")
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(places, width)

    def forward(self, tokens: Int[Tensor, "batch time"], start: int = 0) -> Float[Tensor, "batch time width"]:
        end, places = start + tokens.shape[1], self.places.num_embeddings
        if end > places:
            raise ValueError(f"there are embeddings for {places} places; got tokens up to place {end}")
        embedded: Tensor = self.tokens(tokens) + self.places.weight[start:end]
        return embedded
