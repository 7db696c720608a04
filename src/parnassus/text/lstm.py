"""A recurrent language model: all it knows of the text so far is one vector of fixed size (book sec. 9.2)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.text.reading import State


@dataclass(frozen=True)
class RecurrentState:
    """What the layers of an LSTM remember of each row: h and c."""

    hidden: Float[Tensor, "layers batch width"]
    cell: Float[Tensor, "layers batch width"]

    def rows(self, index: Int[Tensor, " kept"]) -> "RecurrentState":
        return RecurrentState(self.hidden[:, index], self.cell[:, index])


class RecurrentLanguageModel(nn.Module):
    """p(x_t | x_1 … x_{t−1}) from the state of an LSTM that has read x_1 … x_{t−1} (book sec. 9.2).

    A `Reader` without a window: a token costs the same however long the text was.
    """

    window: int | None = None

    def __init__(self, vocabulary: int, *, width: int = 128, depth: int = 1) -> None:
        super().__init__()
        if min(vocabulary, width, depth) < 1:
            raise ValueError(f"vocabulary, width and depth must be at least 1; got {vocabulary=}, {width=}, {depth=}")
        self.embedding = nn.Embedding(vocabulary, width)
        self.network = nn.LSTM(width, width, depth, batch_first=True)
        self.leave = nn.Linear(width, vocabulary)

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time vocabulary"]:
        """Logits of the token after each."""
        logits: Tensor = self.leave(self.network(self.embedding(tokens))[0])
        return logits

    def nll(self, tokens: Int[Tensor, "batch time_and_one"]) -> Float[Tensor, "batch time"]:
        """−log p(x_{t+1} | x_1 … x_t) for each token but the first."""
        return cross_entropy(self(tokens[:, :-1]).mT, tokens[:, 1:], reduction="none")

    def loss(self, tokens: Int[Tensor, "batch time_and_one"]) -> Float[Tensor, ""]:
        """The mean of −log p a token, in nats."""
        return self.nll(tokens).mean()

    @torch.no_grad()
    def read(
        self, tokens: Int[Tensor, "batch time"], state: State | None = None
    ) -> tuple[Float[Tensor, "batch vocabulary"], RecurrentState]:
        """Logits of the token after these, and the state of having read them."""
        if state is not None and not isinstance(state, RecurrentState):
            raise TypeError(f"a recurrent model reads on from a RecurrentState; got {type(state).__name__}")
        before = None if state is None else (state.hidden, state.cell)
        states, (hidden, cell) = self.network(self.embedding(tokens), before)
        logits: Tensor = self.leave(states[:, -1])
        return logits, RecurrentState(hidden, cell)
