"""The whole transformer: one sequence is read, another one written while looking at it (book sec. 10.1.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.attention.block import Arrangement, DecoderBlock, feed_forward, pre_norm
from parnassus.attention.cache import Cache
from parnassus.attention.embedding import PositionalEmbedding
from parnassus.attention.encoder import Encoder, encoder, last_norm, of_length_one
from parnassus.attention.multi_head import Offered, cross_attention
from parnassus.attention.one_row import affine
from parnassus.attention.self_attention import SelfAttention
from parnassus.text.reading import State


class Transformer(nn.Module):
    """p(y_1 … y_m | x_1 … x_n) = Π_t p(y_t | y_1 … y_{t−1}, z_1 … z_n), z = encoder(x) (book sec. 10.1.1).

    The decoder's self-attention is causal; its cross-attention sees the whole source but its filler. A target begins
    with a token that says "begin" and ends with one that says "end"; what follows is `padding` and is not learned.
    The last layer is the embedding of the target, transposed. `smoothing` gives that share of each target's
    probability to all tokens alike, in the loss only (Szegedy et al. 2016).
    """

    def __init__(
        self,
        encoder: Encoder,
        embedding: PositionalEmbedding,
        blocks: Sequence[DecoderBlock],
        *,
        norm: nn.Module,
        padding: int = 0,
        smoothing: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not blocks:
            raise ValueError("a decoder must have at least one block; got none")
        if not all(block.attention.causal for block in blocks):
            raise ValueError("a decoder must not see what it predicts: every block must be causal")
        if not 0 <= smoothing < 1:
            raise ValueError(f"smoothing must lie in [0, 1); got smoothing={smoothing}")
        self.encoder, self.embedding, self.blocks, self.norm = encoder, embedding, nn.ModuleList(blocks), norm
        self.padding, self.smoothing, self.dropout = padding, smoothing, nn.Dropout(dropout)

    @property
    def window(self) -> int:
        """How many tokens a target may have."""
        return self.embedding.places.num_embeddings

    @property
    def vocabulary(self) -> int:
        """How many tokens the target's language has."""
        return self.embedding.tokens.num_embeddings

    @property
    def layers(self) -> list[DecoderBlock]:
        """The decoder's blocks, in order."""
        return cast("list[DecoderBlock]", list(self.blocks))

    def forward(
        self, source: Int[Tensor, "batch n"], target: Int[Tensor, "batch m"]
    ) -> Float[Tensor, "batch m vocabulary"]:
        """Logits of the token after each of the target, all at once: the true past is given (teacher forcing)."""
        return self._logits(self._decode(target, self.offer(source), self.encoder.mask(source)))

    def loss(self, source: Int[Tensor, "batch n"], target: Int[Tensor, "batch m_and_one"]) -> Float[Tensor, ""]:
        """The mean of −log p a token of the target, in nats, filler left out; with the share `smoothing` spread out."""
        logits = self(source, target[:, :-1]).flatten(0, 1)
        wanted = target[:, 1:].flatten()
        return cross_entropy(logits, wanted, ignore_index=self.padding, label_smoothing=self.smoothing)

    def log_prob(
        self, source: Int[Tensor, "batch n"], target: Int[Tensor, "batch m_and_one"]
    ) -> Float[Tensor, " batch"]:
        """The log-probability of each target after its first token, given its source."""
        logits, wanted = self(source, target[:, :-1]), target[:, 1:]
        nll = cross_entropy(logits.mT, wanted, ignore_index=self.padding, reduction="none")
        return -nll.sum(1)

    def given(self, source: Int[Tensor, "batch n"]) -> "Translating":
        """A `Reader` of parnassus.text that writes what follows from these sources, a row for each."""
        with torch.no_grad():
            return Translating(self, self.offer(source), self.encoder.mask(source))

    def offer(self, source: Int[Tensor, "batch n"]) -> tuple[Offered, ...]:
        """The keys and values that the encoded source offers to each block of the decoder."""
        memory = self.encoder(source)
        return tuple(block.cross.offer(memory, memory) for block in self.layers)

    def read_on(
        self, target: Int[Tensor, "batch m"], offered: tuple[Offered, ...], mask: Tensor | None, cache: Cache
    ) -> Float[Tensor, "batch vocabulary"]:
        """Logits of the token after these; only the new tokens are computed."""
        return self._logits(self._decode(target, offered, mask, cache)[:, -1])

    def empty_cache(self, batch: int) -> Cache:
        """Room for keys and values of a target as long as the window."""
        return Cache(tuple(block.attention.remember(batch, self.window) for block in self.layers))

    def _decode(
        self, target: Tensor, offered: tuple[Offered, ...], source_mask: Tensor | None, cache: Cache | None = None
    ) -> Tensor:
        """No mask for the target's own filler: it comes last, and the past never looks there."""
        x: Tensor = self.dropout(self.embedding(target, 0 if cache is None else cache.count))
        for index, block in enumerate(self.layers):
            x = block.read(x, offered[index], None, source_mask, None if cache is None else cache.layers[index])
        return x

    def _logits(self, x: Tensor) -> Tensor:
        return affine(self.norm(x), self.embedding.tokens.weight)


@dataclass(frozen=True)
class Translation:
    """What is remembered while a target is written: its own keys and values, and those of its source."""

    cache: Cache
    offered: tuple[Offered, ...]
    mask: Bool[Tensor, "batch 1 source"] | None

    @torch.no_grad()
    def rows(self, index: Int[Tensor, " kept"]) -> "Translation":
        offered = tuple(Offered(keys[index], values[index]) for keys, values in self.offered)
        return Translation(self.cache.rows(index), offered, None if self.mask is None else self.mask[index])


class Translating:
    """p(y_t | y_1 … y_{t−1}, source) one token after the other; the source was read once (see `Transformer.given`)."""

    def __init__(self, model: Transformer, offered: tuple[Offered, ...], mask: Bool[Tensor, "batch 1 source"] | None):
        self.model, self.offered, self.mask = model, offered, mask

    @property
    def window(self) -> int | None:
        return self.model.window

    @torch.no_grad()
    def read(
        self, tokens: Int[Tensor, "batch time"], state: State | None = None
    ) -> tuple[Float[Tensor, "batch vocabulary"], Translation]:
        """Logits of the token after these. The first call begins a target for each source, in the same order."""
        if state is None:
            state = self._begin(len(tokens))
        if not isinstance(state, Translation):
            raise TypeError(f"a transformer reads on from a Translation; got {type(state).__name__}")
        return self.model.read_on(tokens, state.offered, state.mask, state.cache), state

    def _begin(self, batch: int) -> Translation:
        sources = len(self.offered[0].keys)
        if sources not in (batch, 1):
            raise ValueError(f"there must be a target for each of the {sources} sources; got {batch} targets")
        begun = Translation(self.model.empty_cache(sources), self.offered, self.mask)
        if batch == sources:
            return begun
        return begun.rows(torch.zeros(batch, dtype=torch.long, device=self.offered[0].keys.device))


def seq2seq(
    vocabularies: tuple[int, int],
    places: int,
    *,
    width: int = 128,
    heads: int = 4,
    depth: int = 2,
    hidden: int | None = None,
    dropout: float = 0.0,
    smoothing: float = 0.0,
    arrange: Arrangement = pre_norm,
) -> Transformer:
    """As many blocks in the encoder as in the decoder; `vocabularies` are those of source and target, 0 is filler.

    Vaswani et al. (2017) have `post_norm`, width 512, 8 heads, depth 6, dropout 0.1 and smoothing 0.1.
    """
    reader = encoder(
        vocabularies[0], places, width=width, heads=heads, depth=depth, hidden=hidden, dropout=dropout, arrange=arrange
    )
    blocks = [
        DecoderBlock(
            SelfAttention(width, heads, causal=True, dropout=dropout),
            cross_attention(width, heads, dropout=dropout),
            feed_forward(width, hidden, dropout=dropout),
            norm=lambda: nn.LayerNorm(width),
            arrange=arrange,
        )
        for _ in range(depth)
    ]
    return Transformer(
        reader,
        of_length_one(PositionalEmbedding(vocabularies[1], places, width)),
        blocks,
        norm=last_norm(width, arrange),
        smoothing=smoothing,
        dropout=dropout,
    )
