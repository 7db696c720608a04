"""Attention on top of recurrent states: a decoder that looks back at what was read (Zhao sec. 11, book sec. 10.1)."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from parnassus.attention.dot_product import Attended
from parnassus.attention.lookup import soft_lookup
from parnassus.attention.scores import AdditiveScore


class Decoded(NamedTuple):
    """Logits of the token that comes next at each place, and where the decoder looked for it."""

    logits: Float[Tensor, "batch time vocabulary"]
    weights: Float[Tensor, "batch time memory"]


class BahdanauDecoder(nn.Module):
    """A recurrent decoder whose last state asks all states h_τ of the encoder (Bahdanau et al. 2015).

        c_t = Σ_τ α(s_{t−1}, h_τ) h_τ,   α = softmax over τ of w_vᵀ tanh(W_q s + W_k h)
        s_t = GRU([x_t, c_t], s_{t−1})
        logits of the next token = W [s_t, c_t] + b

    Without attention the encoder would have to say all in one vector. Any other `score` may take the additive one's
    place: a `BilinearScore` makes it multiplicative (Luong et al. 2015).
    """

    def __init__(self, vocabulary: int, width: int, memory: int, *, score: nn.Module | None = None) -> None:
        super().__init__()
        if min(vocabulary, width, memory) < 1:
            raise ValueError(f"sizes must be at least 1; got {vocabulary=}, {width=}, {memory=}")
        self.width = width
        self.score = AdditiveScore(width, memory, width) if score is None else score
        self.tokens = nn.Embedding(vocabulary, width)
        self.cell = nn.GRUCell(width + memory, width)
        self.answer = nn.Linear(width + memory, vocabulary)

    def context(
        self,
        state: Float[Tensor, "batch width"],
        memory: Float[Tensor, "batch source states"],
        mask: Bool[Tensor, "batch 1 source"] | None = None,
    ) -> Attended:
        """The context c = Σ_τ α(s, h_τ) h_τ of one state for each sequence; a memory that is all hidden gives 0."""
        mixed, weights = soft_lookup(state[:, None], memory, memory, mask, score=self.score)
        return Attended(mixed.squeeze(1), weights.squeeze(1))

    def step(
        self,
        token: Int[Tensor, " batch"],
        state: Float[Tensor, "batch width"],
        memory: Float[Tensor, "batch source states"],
        mask: Bool[Tensor, "batch 1 source"] | None = None,
    ) -> tuple[Float[Tensor, "batch vocabulary"], Float[Tensor, "batch width"], Float[Tensor, "batch source"]]:
        """Logits of the token after this one, the new state, and the weights."""
        found, weights = self.context(state, memory, mask)
        state = self.cell(torch.cat([self.tokens(token), found], -1), state)
        return self.answer(torch.cat([state, found], -1)), state, weights

    def forward(
        self,
        tokens: Int[Tensor, "batch time"],
        memory: Float[Tensor, "batch source states"],
        mask: Bool[Tensor, "batch 1 source"] | None = None,
        state: Float[Tensor, "batch width"] | None = None,
    ) -> Decoded:
        """What should follow each token, given those before it; the state begins at 0 unless told."""
        state = memory.new_zeros(len(memory), self.width) if state is None else state
        logits, weights = [], []
        for token in tokens.unbind(1):
            answer, state, looked = self.step(token, state, memory, mask)
            logits.append(answer)
            weights.append(looked)
        return Decoded(torch.stack(logits, 1), torch.stack(weights, 1))
