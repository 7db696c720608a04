"""Sentence classification: an encoder, pooling to one vector and a linear layer (book sec. 10.1.1)."""

from collections.abc import Callable
from typing import Generic, TypeVar

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.arrays import accepts_arrays
from parnassus.attention.models.encoder import Encoder
from parnassus.recurrent.encoder import RecurrentEncoder

AnyEncoder = TypeVar("AnyEncoder", Encoder, RecurrentEncoder)


class SentenceClassifier(nn.Module, Generic[AnyEncoder]):
    """p(class | sentence) = softmax(W v + b), where `pool` computes the vector v (book sec. 10.1.2).

    `pool` may be `Encoder.mean_pool` or `RecurrentEncoder.final_state`; an `Encoder` without blocks and with mean
    pooling is a bag-of-words model.

    >>> encoder = Encoder(PositionalEmbedding(100, 8, 16), [], norm=nn.LayerNorm(16))
    >>> SentenceClassifier(encoder, Encoder.mean_pool, 3)(torch.tensor([[5, 7, 0]])).shape
    torch.Size([1, 3])
    """

    def __init__(self, encoder: AnyEncoder, pool: Callable[[AnyEncoder, Tensor], Tensor], classes: int) -> None:
        super().__init__()
        if classes < 2:
            raise ValueError(f"classes must be at least 2; got classes={classes}")
        self.encoder: AnyEncoder = encoder
        self.pool: Callable[[AnyEncoder, Tensor], Tensor] = pool
        self.head = nn.Linear(encoder.width, classes)

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch classes"]:
        """Logits of each class."""
        logits: Tensor = self.head(self.embed(tokens))
        return logits

    def embed(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch width"]:
        """One vector per sentence."""
        return self.pool(self.encoder, tokens)

    @accepts_arrays
    def loss(self, tokens: Int[Tensor, "batch time"], label: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        """The mean of −log p of the true class."""
        return cross_entropy(self(tokens), label)
