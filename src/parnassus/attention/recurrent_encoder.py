"""The older way to see both sides of a place: two recurrent networks, one from each end (book sec. 10.1.2)."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from parnassus.attention.embedding import TokenEmbedding
from parnassus.attention.encoder import of_length_one
from parnassus.attention.masks import padding_mask


class RecurrentEncoder(nn.Module):
    """h_t = [h→_t, h←_t]: one LSTM reads from the left, one from the right (book sec. 10.1.2; Schuster & Paliwal 1997).

    An `Encoder` without attention, to be set beside one. Each direction has half the width. Filler, which must come
    last, is not read: the right-hand network begins at the last true token.
    """

    def __init__(self, vocabulary: int, *, width: int = 128, depth: int = 1, padding: int = 0) -> None:
        super().__init__()
        if width < 2 or width % 2:
            raise ValueError(f"width must be even, half of it for each direction; got width={width}")
        self.embedding, self.padding = of_length_one(TokenEmbedding(vocabulary, width)), padding
        self.network = nn.LSTM(width, width // 2, depth, batch_first=True, bidirectional=True)

    @property
    def vocabulary(self) -> int:
        return self.embedding.tokens.num_embeddings

    @property
    def width(self) -> int:
        return self.embedding.tokens.embedding_dim

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time width"]:
        """Both states at each place side by side; zeros where there is filler."""
        states, _ = self.network(self._packed(tokens))
        padded, _ = pad_packed_sequence(states, batch_first=True, total_length=tokens.shape[1])
        return padded.masked_fill(~self.mask(tokens).mT, 0.0)

    def mask(self, tokens: Int[Tensor, "batch time"]) -> Bool[Tensor, "batch 1 time"]:
        """Which tokens are no filler."""
        return padding_mask(tokens, self.padding)

    def thought(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch width"]:
        """The thought vector: where each network ends, [h→_T, h←_1] (book sec. 10.1.2)."""
        _, (last, _) = self.network(self._packed(tokens))
        return torch.cat([last[-2], last[-1]], -1)

    def _packed(self, tokens: Tensor) -> PackedSequence:
        lengths = (tokens != self.padding).sum(1)
        if bool(((tokens != self.padding).long().diff(dim=1) > 0).any()):
            raise ValueError("filler must come after all other tokens of a row: a recurrent network reads in order")
        return pack_padded_sequence(
            self.embedding(tokens), lengths.clamp_min(1).cpu(), batch_first=True, enforce_sorted=False
        )
