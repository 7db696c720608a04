"""Bidirectional LSTM encoder (book sec. 10.1.2)."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from parnassus.layers.token_embedding import TokenEmbedding, initialise_embeddings, padding_mask


class RecurrentEncoder(nn.Module):
    """h_t = [h→_t, h←_t]: a forward and a backward LSTM (book sec. 10.1.2; Schuster & Paliwal 1997).

    It has the interface of the transformer encoder. Each direction has half the width. Padding must come last and is
    skipped: the backward LSTM starts at the last token that is not padding.

    >>> RecurrentEncoder(100, width=16)(torch.tensor([[5, 7, 0]])).shape
    torch.Size([1, 3, 16])
    """

    def __init__(self, vocabulary: int, *, width: int = 128, depth: int = 1, padding: int = 0) -> None:
        super().__init__()
        if width < 2 or width % 2:
            raise ValueError(f"width must be even and at least 2; got width={width}")
        self.embedding, self.padding = initialise_embeddings(TokenEmbedding(vocabulary, width)), padding
        self.network = nn.LSTM(width, width // 2, depth, batch_first=True, bidirectional=True)

    @property
    def vocabulary(self) -> int:
        return self.embedding.tokens.num_embeddings

    @property
    def width(self) -> int:
        return self.embedding.tokens.embedding_dim

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time width"]:
        """The concatenated states at each position; zeros at padding."""
        states, _ = self.network(self._pack(tokens))
        padded, _ = pad_packed_sequence(states, batch_first=True, total_length=tokens.shape[1])
        return padded.masked_fill(~self.mask(tokens).mT, 0.0)

    def mask(self, tokens: Int[Tensor, "batch time"]) -> Bool[Tensor, "batch 1 time"]:
        """True where a token is not padding."""
        return padding_mask(tokens, self.padding)

    def final_state(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch width"]:
        """The thought vector [h→_T, h←_1], the final state of each direction (book sec. 10.1.2)."""
        _, (last, _) = self.network(self._pack(tokens))
        return torch.cat([last[-2], last[-1]], -1)

    def _pack(self, tokens: Tensor) -> PackedSequence:
        lengths = (tokens != self.padding).sum(1)
        if bool(((tokens != self.padding).long().diff(dim=1) > 0).any()):
            raise ValueError("padding must come after all other tokens of a row")
        return pack_padded_sequence(
            self.embedding(tokens), lengths.clamp_min(1).cpu(), batch_first=True, enforce_sorted=False
        )
