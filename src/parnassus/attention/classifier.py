"""An encoder alone, for sorting sentences: one vector for each, and a linear layer upon it (book sec. 10.1.1)."""

from collections.abc import Callable
from typing import Generic, TypeVar

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.attention.encoder import Encoder
from parnassus.attention.recurrent_encoder import RecurrentEncoder

Reads = TypeVar("Reads", Encoder, RecurrentEncoder)


class SentenceClassifier(nn.Module, Generic[Reads]):
    """p(class | sentence) = softmax(W v + b), v the vector that `summary` makes of the sentence (book sec. 10.1.2).

    `Encoder.pooled` is the mean of the last layer, `RecurrentEncoder.thought` a recurrent network's last states; an
    `Encoder` without blocks pools the words themselves: a bag of words.
    """

    def __init__(self, encoder: Reads, summary: Callable[[Reads, Tensor], Tensor], classes: int) -> None:
        super().__init__()
        if classes < 2:
            raise ValueError(f"there must be two classes to tell apart; got classes={classes}")
        self.encoder: Reads = encoder
        self.summary: Callable[[Reads, Tensor], Tensor] = summary
        self.head = nn.Linear(encoder.width, classes)

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch classes"]:
        """Logits of each class."""
        logits: Tensor = self.head(self.vector(tokens))
        return logits

    def vector(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch width"]:
        """One vector for each sentence."""
        return self.summary(self.encoder, tokens)

    def loss(self, tokens: Int[Tensor, "batch time"], label: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        """−log p of the right class, a mean over the sentences."""
        return cross_entropy(self(tokens), label)
