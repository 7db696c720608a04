"""LSTM language model (book sec. 9.2)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.arrays import accepts_arrays
from parnassus.text.autoregressive_model import State, next_token_nll


@dataclass(frozen=True)
class RecurrentState:
    """Hidden and cell states h and c of all layers for each row."""

    hidden: Float[Tensor, "layers batch width"]
    cell: Float[Tensor, "layers batch width"]

    def rows(self, index: Int[Tensor, " kept"]) -> "RecurrentState":
        return RecurrentState(self.hidden[:, index], self.cell[:, index])


class RecurrentLanguageModel(nn.Module):
    """p(x_t | x_1 … x_{t−1}) from the state of an LSTM after x_1 … x_{t−1} (book sec. 9.2).

    An `AutoregressiveModel` with unlimited window: the cost per token does not depend on the length of the context.
    """

    window: int | None = None

    def __init__(self, vocabulary: int, *, width: int = 128, depth: int = 1) -> None:
        super().__init__()
        if min(vocabulary, width, depth) < 1:
            raise ValueError(f"vocabulary, width and depth must be at least 1; got {vocabulary=}, {width=}, {depth=}")
        self.embedding = nn.Embedding(vocabulary, width)
        self.network = nn.LSTM(width, width, depth, batch_first=True)
        self.output = nn.Linear(width, vocabulary)

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time vocabulary"]:
        """Logits of the token after each position."""
        logits: Tensor = self.output(self.network(self.embedding(tokens))[0])
        return logits

    def nll(self, tokens: Int[Tensor, "batch time_and_one"]) -> Float[Tensor, "batch time"]:
        """−log p(x_{t+1} | x_1 … x_t) of each token except the first."""
        return next_token_nll(self(tokens[:, :-1]), tokens)

    @accepts_arrays
    def loss(self, tokens: Int[Tensor, "batch time_and_one"]) -> Float[Tensor, ""]:
        """Mean −log p per token, in nats."""
        return self.nll(tokens).mean()

    @torch.no_grad()
    def read(
        self, tokens: Int[Tensor, "batch time"], state: State | None = None
    ) -> tuple[Float[Tensor, "batch vocabulary"], RecurrentState]:
        """Logits of the next token, and the state after these tokens."""
        if state is not None and not isinstance(state, RecurrentState):
            raise TypeError(f"state must be a RecurrentState; got {type(state).__name__}")
        initial = None if state is None else (state.hidden, state.cell)
        states, (hidden, cell) = self.network(self.embedding(tokens), initial)
        logits: Tensor = self.output(states[:, -1])
        return logits, RecurrentState(hidden, cell)
