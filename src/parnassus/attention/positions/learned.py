"""Token embeddings with learned absolute positions (book sec. 10.1.1)."""

from jaxtyping import Float, Int
from torch import Tensor, nn


class PositionalEmbedding(nn.Module):
    """Learned vectors for tokens and positions, added: token(x_t) + position(t) (book sec. 10.1.1).

    There are `max_length` position vectors; a longer sequence raises ValueError.

    >>> PositionalEmbedding(100, 8, 16)(torch.tensor([[5, 7, 3]])).shape
    torch.Size([1, 3, 16])
    """

    def __init__(self, vocabulary: int, max_length: int, width: int) -> None:
        super().__init__()
        if min(vocabulary, max_length, width) < 1:
            raise ValueError(
                f"vocabulary, max_length and width must be at least 1; got {vocabulary=}, {max_length=}, {width=}"
            )
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(max_length, width)

    def forward(self, tokens: Int[Tensor, "batch time"], start: int = 0) -> Float[Tensor, "batch time width"]:
        end, max_length = start + tokens.shape[1], self.positions.num_embeddings
        if end > max_length:
            raise ValueError(f"there are {max_length} positions; got tokens up to position {end}")
        embedded: Tensor = self.tokens(tokens) + self.positions.weight[start:end]
        return embedded
