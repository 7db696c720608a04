"""GPT: a stack of causal blocks that predicts the next token (book sec. 10.1.1)."""

from collections.abc import Callable
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.attention.block import Block, feed_forward
from parnassus.attention.cache import Cache
from parnassus.attention.embedding import PositionalEmbedding, TokenEmbedding
from parnassus.attention.one_row import affine
from parnassus.attention.rotary import Rotary
from parnassus.attention.self_attention import SelfAttention
from parnassus.text.reading import State


class LanguageModel(nn.Module):
    """p(x_1 … x_T) = Π_t p(x_t | x_1 … x_{t−1}) by causal attention; the last layer is the embedding, transposed.

    A `Reader` of parnassus.text: it reads on from a cache of keys and values.
    """

    def __init__(self, embedding: TokenEmbedding | PositionalEmbedding, blocks: list[Block], *, window: int) -> None:
        super().__init__()
        if not blocks:
            raise ValueError("a language model must have at least one block; got none")
        if not all(block.attention.causal for block in blocks):
            raise ValueError("a language model must not see what it predicts: every block must be causal")
        self.embedding, self.blocks, self.window = embedding, nn.ModuleList(blocks), window
        self.heads = blocks[0].attention.heads
        self.norm = type(blocks[0].norms[0])(embedding.tokens.embedding_dim)
        self._joined: Callable[[Tensor, Cache], Tensor] | None = None

    @property
    def vocabulary(self) -> int:
        return self.embedding.tokens.num_embeddings

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time vocabulary"]:
        """Logits of the token after each."""
        return self._logits(self.hidden(tokens))

    def hidden(
        self, tokens: Int[Tensor, "batch time"], cache: Cache | None = None
    ) -> Float[Tensor, "batch time width"]:
        """What the last block makes of each place."""
        start = 0 if cache is None else cache.count
        if start + tokens.shape[1] > self.window:
            raise ValueError(f"the window holds {self.window} tokens; got {start + tokens.shape[1]}")
        x: Tensor = self.embedding(tokens, start)
        for index, block in enumerate(self.blocks):
            x = block(x, None, None if cache is None else cache.layers[index])
        return x

    def nll(self, tokens: Int[Tensor, "batch time_and_one"]) -> Float[Tensor, "batch time"]:
        """−log p(x_{t+1} | x_1 … x_t) for each token but the first."""
        logits = self(tokens[:, :-1])
        return cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none").view(len(tokens), -1)

    def loss(self, tokens: Int[Tensor, "batch time_and_one"]) -> Float[Tensor, ""]:
        """The mean of −log p a token, in nats."""
        return cross_entropy(self(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    def log_prob(self, tokens: Int[Tensor, "batch time_and_one"]) -> Float[Tensor, " batch"]:
        """The sum over t of log p(x_{t+1} | x_1 … x_t), for each row."""
        return -self.nll(tokens).sum(1)

    @torch.inference_mode()  # a fifth faster than no_grad: for one token, bookkeeping is most of the work
    def read(
        self, tokens: Int[Tensor, "batch time"], state: State | None = None
    ) -> tuple[Float[Tensor, "batch vocabulary"], Cache]:
        """Logits of the token after these; only the new tokens are computed."""
        if state is not None and not isinstance(state, Cache):
            raise TypeError(f"a language model reads on from a Cache; got {type(state).__name__}")
        if tokens.shape[1] == 0:
            raise ValueError("there is nothing to read: at least one token is needed to say what comes after it")
        cache = self.empty_cache(len(tokens)) if state is None else state
        hidden = self.hidden if self._joined is None else self._joined
        return self._logits(hidden(tokens, cache)[:, -1]), cache

    def join_operations(self) -> None:
        """Let torch.compile join the operations of `read`: seconds to a minute at first, then less time for a token.

        On a CPU every weight is then read once and nothing else goes through memory.
        """
        self._joined = torch.compile(self.hidden)

    def empty_cache(self, batch: int) -> Cache:
        """Room for a whole window in the memory of every layer."""
        layers = [cast("Block", block).attention for block in self.blocks]
        return Cache(tuple(layer.remember(batch, self.window) for layer in layers))

    def _logits(self, x: Tensor) -> Tensor:
        return affine(self.norm(x), self.embedding.tokens.weight)


def gpt(
    vocabulary: int, window: int, *, width: int = 128, heads: int = 4, depth: int = 4, dropout: float = 0.0
) -> LanguageModel:
    """GPT-2's shape: learned places, pre-norm blocks, GELU, weights of spread 0.02 (book sec. 10.1.1)."""
    blocks = [
        Block(
            SelfAttention(width, heads, causal=True, dropout=dropout),
            feed_forward(width, activation=lambda: nn.GELU(approximate="tanh"), dropout=dropout),
            norm=lambda: nn.LayerNorm(width),
        )
        for _ in range(depth)
    ]
    return initialised(LanguageModel(PositionalEmbedding(vocabulary, window, width), blocks, window=window))


def rotary_gpt(
    vocabulary: int, window: int, *, width: int = 128, heads: int = 4, depth: int = 4, dropout: float = 0.0
) -> LanguageModel:
    """The shape of today: rotary places, RMS norms, no biases in attention."""
    turning = Rotary(width // max(heads, 1), window)  # one for all blocks; SelfAttention refuses 0 heads
    blocks = [
        Block(
            SelfAttention(width, heads, causal=True, positions=turning, dropout=dropout, bias=False),
            feed_forward(width, activation=lambda: nn.GELU(approximate="tanh"), dropout=dropout),
            norm=lambda: nn.RMSNorm(width),
        )
        for _ in range(depth)
    ]
    return initialised(LanguageModel(TokenEmbedding(vocabulary, width), blocks, window=window))


def initialised(model: LanguageModel, spread: float = 0.02) -> LanguageModel:
    """Weights from N(0, 0.02²), those that write into the residual stream divided by √(2 · depth) (GPT-2)."""
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            writes = name.endswith(("attention.answer.weight", "dense.2.weight"))
            nn.init.normal_(parameter, std=spread / (2 * len(model.blocks)) ** 0.5 if writes else spread)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    return model
