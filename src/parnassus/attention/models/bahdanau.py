"""Bahdanau attention: a recurrent decoder that attends to encoder states (Zhao sec. 11, book sec. 10.1)."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from parnassus.attention.core.dot_product import AttentionOutput
from parnassus.attention.core.lookup import soft_lookup
from parnassus.attention.core.scores import AdditiveScore


class DecoderOutput(NamedTuple):
    """Logits of the next token at each position, and the attention weights over the encoder states."""

    logits: Float[Tensor, "batch time vocabulary"]
    weights: Float[Tensor, "batch time memory"]


class BahdanauDecoder(nn.Module):
    """A recurrent decoder whose last state attends to all encoder states h_τ (Bahdanau et al. 2015).

        c_t = Σ_τ α(s_{t−1}, h_τ) h_τ,   α = softmax over τ of w_vᵀ tanh(W_q s + W_k h)
        s_t = GRU([x_t, c_t], s_{t−1})
        logits of the next token = W [s_t, c_t] + b

    Without attention the encoder would have to compress the source into one vector. `score` is an `AdditiveScore` by
    default; a `BilinearScore` gives multiplicative attention (Luong et al. 2015).

    >>> decoder = BahdanauDecoder(100, width=16, memory=8)
    >>> decoder.context(torch.zeros(1, 16), torch.zeros(1, 5, 8))[0].shape
    torch.Size([1, 8])
    """

    def __init__(self, vocabulary: int, width: int, memory: int, *, score: nn.Module | None = None) -> None:
        super().__init__()
        if min(vocabulary, width, memory) < 1:
            raise ValueError(f"sizes must be at least 1; got {vocabulary=}, {width=}, {memory=}")
        self.width = width
        self.score = AdditiveScore(width, memory, width) if score is None else score
        self.tokens = nn.Embedding(vocabulary, width)
        self.cell = nn.GRUCell(width + memory, width)
        self.output = nn.Linear(width + memory, vocabulary)

    def context(
        self,
        state: Float[Tensor, "batch width"],
        memory: Float[Tensor, "batch source states"],
        mask: Bool[Tensor, "batch 1 source"] | None = None,
    ) -> AttentionOutput:
        """The context c = Σ_τ α(s, h_τ) h_τ of one state per sequence; 0 if the memory is fully masked."""
        context, weights = soft_lookup(state[:, None], memory, memory, mask, score=self.score)
        return AttentionOutput(context.squeeze(1), weights.squeeze(1))

    def step(
        self,
        token: Int[Tensor, " batch"],
        state: Float[Tensor, "batch width"],
        memory: Float[Tensor, "batch source states"],
        mask: Bool[Tensor, "batch 1 source"] | None = None,
    ) -> tuple[Float[Tensor, "batch vocabulary"], Float[Tensor, "batch width"], Float[Tensor, "batch source"]]:
        """Logits of the next token, the new state and the attention weights."""
        context, weights = self.context(state, memory, mask)
        state = self.cell(torch.cat([self.tokens(token), context], -1), state)
        return self.output(torch.cat([state, context], -1)), state, weights

    def forward(
        self,
        tokens: Int[Tensor, "batch time"],
        memory: Float[Tensor, "batch source states"],
        mask: Bool[Tensor, "batch 1 source"] | None = None,
        state: Float[Tensor, "batch width"] | None = None,
    ) -> DecoderOutput:
        """Logits of the next token at each position; the initial state is 0 by default."""
        state = memory.new_zeros(len(memory), self.width) if state is None else state
        logits, weights = [], []
        for token in tokens.unbind(1):
            step_logits, state, step_weights = self.step(token, state, memory, mask)
            logits.append(step_logits)
            weights.append(step_weights)
        return DecoderOutput(torch.stack(logits, 1), torch.stack(weights, 1))
