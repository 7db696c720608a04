"""Next-term prediction of linear recurrences by a transformer with or without a causal mask (Diehl sec. 3)."""

from itertools import product

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.arrays import accepts_arrays
from parnassus.attention.models.block import Block
from parnassus.attention.positions.sinusoidal import SinusoidalEmbedding
from parnassus.text.autoregressive_model import next_token_nll

NUM_TERMS = 13  # twelve inputs and the last target


class RecurrencePredictor(nn.Module):
    """Pre-norm blocks that predict the next term at every position; unlike `LanguageModel`, also without a mask."""

    def __init__(self, embedding: SinusoidalEmbedding, blocks: list[Block]) -> None:
        super().__init__()
        self.embedding, self.blocks = embedding, nn.ModuleList(blocks)
        vocabulary, width = embedding.tokens.weight.shape
        self.output = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, vocabulary))

    def forward(self, terms: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time vocabulary"]:
        """Logits of the next term at each position."""
        x: Tensor = self.embedding(terms)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.output(x)
        return logits

    def nll(self, terms: Int[Tensor, "batch time_and_one"]) -> Float[Tensor, "batch time"]:
        """−log p(s_{t+1} | input of position t) by sequence and position."""
        return next_token_nll(self(terms[:, :-1]), terms)

    @accepts_arrays
    def loss(self, terms: Int[Tensor, "batch time_and_one"]) -> Float[Tensor, ""]:
        """The mean of −log p per term, in nats."""
        return self.nll(terms).mean()

    @torch.no_grad()
    def generate(self, terms: Int[Tensor, "batch time"], count: int) -> Int[Tensor, "batch longer"]:
        """The sequences continued greedily by `count` terms."""
        for _ in range(count):
            terms = torch.cat([terms, self(terms)[:, -1:].argmax(-1)], 1)
        return terms


def linear_recurrences(modulus: int) -> Int[Tensor, "27 13"]:
    """s_{t+1} = a s_t + b s_{t−1} modulo a prime, s_{−1} = 0, for all s_0 ∈ {1, 2, 3} and a, b ∈ {0, 1, 2}: 27 rows."""
    if modulus < 4:
        raise ValueError(f"modulus must exceed the first terms, at most 3; got modulus={modulus}")
    rows = []
    for first, a, b in product((1, 2, 3), (0, 1, 2), (0, 1, 2)):
        terms = [0, first]
        while len(terms) < NUM_TERMS + 1:
            terms.append((a * terms[-1] + b * terms[-2]) % modulus)
        rows.append(terms[1:])
    return torch.tensor(rows)


def conditional_entropies(sequences: Int[Tensor, "count time"]) -> Float[Tensor, " steps"]:
    """H(s_{t+1} | s_0 … s_t) = H(s_0 … s_{t+1}) − H(s_0 … s_t) for equally likely rows, in nats."""
    entropies = []
    for length in range(1, sequences.shape[1] + 1):
        counts = sequences[:, :length].unique(dim=0, return_counts=True)[1]
        entropies.append(torch.special.entr(counts.double() / len(sequences)).sum())
    return torch.stack(entropies).diff().cpu()
