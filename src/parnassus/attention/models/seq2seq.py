"""The encoder-decoder transformer for sequence-to-sequence tasks (book sec. 10.1.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.arrays import accepts_arrays
from parnassus.attention.core.cache import Cache
from parnassus.attention.core.multi_head import KeyValueHeads, cross_attention
from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.models.block import DecoderBlock, ResidualConnection, feed_forward, pre_norm
from parnassus.attention.models.encoder import Encoder, encoder, last_norm
from parnassus.attention.models.gpt import tied_logits
from parnassus.attention.positions.learned import PositionalEmbedding
from parnassus.layers.token_embedding import initialise_embeddings
from parnassus.text.autoregressive_model import State


class Transformer(nn.Module):
    """p(y_1 … y_m | x_1 … x_n) = Π_t p(y_t | y_1 … y_{t−1}, z_1 … z_n), z = encoder(x) (book sec. 10.1.1).

    The decoder's self-attention is causal; its cross-attention attends to the whole source except padding. A target
    starts with a begin token and ends with an end token; `padding` after it is ignored in the loss. The output layer is
    tied to the target's embedding. `label_smoothing` applies to the loss only (Szegedy et al. 2016).
    """

    def __init__(
        self,
        encoder: Encoder,
        embedding: PositionalEmbedding,
        blocks: Sequence[DecoderBlock],
        *,
        norm: nn.Module,
        padding: int = 0,
        label_smoothing: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not blocks:
            raise ValueError("at least one decoder block is needed; got none")
        if not all(block.attention.causal for block in blocks):
            raise ValueError("every block of a decoder must be causal")
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing must satisfy 0 ≤ label_smoothing < 1; got {label_smoothing=}")
        self.encoder, self.embedding, self.blocks, self.norm = encoder, embedding, nn.ModuleList(blocks), norm
        self.padding, self.label_smoothing, self.dropout = padding, label_smoothing, nn.Dropout(dropout)

    @property
    def window(self) -> int:
        """The maximum number of tokens of a target."""
        return self.embedding.positions.num_embeddings

    @property
    def vocabulary(self) -> int:
        """The vocabulary size of the target."""
        return self.embedding.tokens.num_embeddings

    @property
    def layers(self) -> list[DecoderBlock]:
        """The decoder's blocks, in order."""
        return cast("list[DecoderBlock]", list(self.blocks))

    def forward(
        self, source: Int[Tensor, "batch n"], target: Int[Tensor, "batch m"]
    ) -> Float[Tensor, "batch m vocabulary"]:
        """Logits of the next token at each position of the target, given its true past (teacher forcing)."""
        x = self._decode(target, self.project_source(source), self.encoder.mask(source))
        return tied_logits(x, self.norm, self.embedding)

    def loss(self, source: Int[Tensor, "batch n"], target: Int[Tensor, "batch m_and_one"]) -> Float[Tensor, ""]:
        """The mean of −log p per target token, in nats, without padding, with label smoothing."""
        logits = self(source, target[:, :-1]).flatten(0, 1)
        labels = target[:, 1:].flatten()
        return cross_entropy(logits, labels, ignore_index=self.padding, label_smoothing=self.label_smoothing)

    @accepts_arrays
    def log_prob(
        self, source: Int[Tensor, "batch n"], target: Int[Tensor, "batch m_and_one"]
    ) -> Float[Tensor, " batch"]:
        """The log-probability of each target after its first token, given its source."""
        logits, labels = self(source, target[:, :-1]), target[:, 1:]
        nll = cross_entropy(logits.mT, labels, ignore_index=self.padding, reduction="none")
        return -nll.sum(1)

    def condition_on(self, source: Int[Tensor, "batch n"]) -> "ConditionedDecoder":
        """An `AutoregressiveModel` of parnassus.text for targets of these sources, one per row."""
        with torch.no_grad():
            return ConditionedDecoder(self, self.project_source(source), self.encoder.mask(source))

    def project_source(self, source: Int[Tensor, "batch n"]) -> tuple[KeyValueHeads, ...]:
        """The keys and values of the encoded source in each block of the decoder."""
        memory = self.encoder(source)
        return tuple(block.cross.project_key_value(memory, memory) for block in self.layers)

    def next_logits(
        self, target: Int[Tensor, "batch m"], memory: tuple[KeyValueHeads, ...], mask: Tensor | None, cache: Cache
    ) -> Float[Tensor, "batch vocabulary"]:
        """Logits of the token after these; only the new tokens are processed."""
        return tied_logits(self._decode(target, memory, mask, cache)[:, -1], self.norm, self.embedding)

    def empty_cache(self, batch: int) -> Cache:
        """An empty cache for targets up to the window."""
        return Cache(tuple(block.attention.empty_cache(batch, self.window) for block in self.layers))

    def _decode(
        self, target: Tensor, memory: tuple[KeyValueHeads, ...], source_mask: Tensor | None, cache: Cache | None = None
    ) -> Tensor:
        """The decoder's output; the target's padding comes last, so causal attention needs no mask for it."""
        x: Tensor = self.dropout(self.embedding(target, 0 if cache is None else cache.count))
        for index, block in enumerate(self.layers):
            x = block.attend(x, memory[index], None, source_mask, None if cache is None else cache.layers[index])
        return x


@dataclass(frozen=True)
class DecoderState:
    """The decoding state: keys and values of the target and of its source."""

    cache: Cache
    memory: tuple[KeyValueHeads, ...]
    mask: Bool[Tensor, "batch 1 source"] | None

    @torch.no_grad()
    def rows(self, index: Int[Tensor, " kept"]) -> "DecoderState":
        memory = tuple(KeyValueHeads(keys[index], values[index]) for keys, values in self.memory)
        return DecoderState(self.cache.rows(index), memory, None if self.mask is None else self.mask[index])


class ConditionedDecoder:
    """p(y_t | y_1 … y_{t−1}, source) token by token; the source is encoded once (see `Transformer.condition_on`)."""

    def __init__(
        self, model: Transformer, memory: tuple[KeyValueHeads, ...], mask: Bool[Tensor, "batch 1 source"] | None
    ):
        self.model, self.memory, self.mask = model, memory, mask

    @property
    def window(self) -> int | None:
        return self.model.window

    @torch.no_grad()
    def read(
        self, tokens: Int[Tensor, "batch time"], state: State | None = None
    ) -> tuple[Float[Tensor, "batch vocabulary"], DecoderState]:
        """Logits of the token after these. The first call starts one target per source, in the same order."""
        if state is None:
            state = self._initial_state(len(tokens))
        if not isinstance(state, DecoderState):
            raise TypeError(f"the state of a transformer must be a DecoderState; got {type(state).__name__}")
        return self.model.next_logits(tokens, state.memory, state.mask, state.cache), state

    def _initial_state(self, batch: int) -> DecoderState:
        sources = len(self.memory[0].keys)
        if sources not in (batch, 1):
            raise ValueError(f"there must be one target per source; got {sources} sources, {batch} targets")
        state = DecoderState(self.model.empty_cache(sources), self.memory, self.mask)
        if batch == sources:
            return state
        return state.rows(torch.zeros(batch, dtype=torch.long, device=self.memory[0].keys.device))


def seq2seq(
    vocabularies: tuple[int, int],
    max_length: int,
    *,
    width: int = 128,
    heads: int = 4,
    depth: int = 2,
    hidden: int | None = None,
    dropout: float = 0.0,
    label_smoothing: float = 0.0,
    residual: ResidualConnection = pre_norm,
) -> Transformer:
    """A transformer with `depth` encoder and decoder blocks; `vocabularies` of source and target, token 0 is padding.

    Vaswani et al. (2017) have `post_norm`, width 512, 8 heads, depth 6, dropout 0.1 and label smoothing 0.1.
    """
    source_encoder = encoder(
        vocabularies[0],
        max_length,
        width=width,
        heads=heads,
        depth=depth,
        hidden=hidden,
        dropout=dropout,
        residual=residual,
    )
    blocks = [
        DecoderBlock(
            SelfAttention(width, heads, causal=True, dropout=dropout),
            cross_attention(width, heads, dropout=dropout),
            feed_forward(width, hidden, dropout=dropout),
            norm=lambda: nn.LayerNorm(width),
            residual=residual,
        )
        for _ in range(depth)
    ]
    return Transformer(
        source_encoder,
        initialise_embeddings(PositionalEmbedding(vocabularies[1], max_length, width)),
        blocks,
        norm=last_norm(width, residual),
        label_smoothing=label_smoothing,
        dropout=dropout,
    )
