"""BERT: masked language modelling with a bidirectional encoder (book sec. 10.1.1)."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from parnassus.arrays import accepts_arrays
from parnassus.attention.models.encoder import Encoder, encoder
from parnassus.recurrent.encoder import RecurrentEncoder


class MaskedTokens(NamedTuple):
    """Corrupted tokens, and which of them were selected for prediction.

    >>> MaskedTokens(torch.tensor([[5, 1]]), torch.tensor([[False, True]])).selected.sum().item()
    1
    """

    tokens: Int[Tensor, "batch time"]
    selected: Bool[Tensor, "batch time"]


def mask_tokens(
    tokens: Int[Tensor, "batch time"],
    *,
    mask_token_id: int,
    ordinary: range,
    mask_probability: float = 0.15,
    generator: torch.Generator | None = None,
) -> MaskedTokens:
    """BERT's corruption: ordinary tokens are selected with `mask_probability` and mostly masked (Devlin et al. 2019).

    Of the selected tokens 80 % are masked, 10 % become a random ordinary token and 10 % are kept, so that the model
    learns a representation of visible tokens too. Tokens outside `ordinary`, such as padding, are never selected (book
    sec. 10.1.1).
    """
    if not 0 < mask_probability <= 1:
        raise ValueError(f"mask_probability must satisfy 0 < mask_probability ≤ 1; got {mask_probability=}")
    if len(ordinary) < 1 or ordinary.step != 1:
        raise ValueError(f"ordinary must be a non-empty range with step 1; got {ordinary}")
    draw, action = (torch.rand(tokens.shape, generator=generator, device=tokens.device) for _ in range(2))
    selected = (draw < mask_probability) & (tokens >= ordinary.start) & (tokens < ordinary.stop)
    other = torch.randint(ordinary.start, ordinary.stop, tokens.shape, generator=generator, device=tokens.device)
    corrupted = torch.where(
        action < 0.8, torch.full_like(tokens, mask_token_id), torch.where(action < 0.9, other, tokens)
    )
    return MaskedTokens(torch.where(selected, corrupted, tokens), selected)


class MaskedLanguageModel(nn.Module):
    """p(x_t | visible tokens) at each position t, by a bidirectional encoder (book sec. 10.1.1).

    Its vocabulary is that of the encoder: 0 is padding, 1 the mask, and from 2 on ordinary tokens. The output layer is
    tied to the embedding, with a bias for each token.

    >>> model = bert(100, 8, width=16, depth=1)
    >>> model(torch.tensor([[5, 1, 3]])).shape
    torch.Size([1, 3, 100])
    """

    MASK = 1
    FIRST = 2  # the first ordinary token

    def __init__(self, encoder: Encoder | RecurrentEncoder, *, mask_probability: float = 0.15) -> None:
        super().__init__()
        if encoder.vocabulary <= self.FIRST:
            raise ValueError(f"vocabulary must be larger than {self.FIRST}; got vocabulary={encoder.vocabulary}")
        self.encoder, self.mask_probability = encoder, mask_probability
        self.transform = nn.Sequential(nn.Linear(encoder.width, encoder.width), nn.GELU(), nn.LayerNorm(encoder.width))
        self.bias = nn.Parameter(torch.zeros(encoder.vocabulary))

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time vocabulary"]:
        """Logits of the original token at each position."""
        return linear(self.transform(self.encoder(tokens)), self.encoder.embedding.tokens.weight, self.bias)

    @accepts_arrays
    def loss(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, ""]:
        """The mean of −log p over the tokens selected by `mask_tokens`."""
        return self.masked_loss(tokens, self.mask_tokens(tokens))

    def masked_loss(self, tokens: Int[Tensor, "batch time"], masked: MaskedTokens) -> Float[Tensor, ""]:
        """The mean of −log p(x_t | corrupted tokens) over the selected positions t; 0 if there are none."""
        selected = masked.selected.to(torch.float32)
        nll = cross_entropy(self(masked.tokens).mT, tokens, reduction="none")
        return (nll * selected).sum() / selected.sum().clamp_min(1)

    def mask_tokens(
        self, tokens: Int[Tensor, "batch time"], *, generator: torch.Generator | None = None
    ) -> MaskedTokens:
        """Corrupt tokens for this model; padding and mask are never selected."""
        ordinary = range(self.FIRST, self.encoder.vocabulary)
        return mask_tokens(
            tokens,
            mask_token_id=self.MASK,
            ordinary=ordinary,
            mask_probability=self.mask_probability,
            generator=generator,
        )

    @torch.no_grad()
    def fill_mask(self, tokens: Int[Tensor, "batch time"]) -> Int[Tensor, "batch time"]:
        """The most likely ordinary token at each masked position; other tokens are kept."""
        prediction = self(tokens)[..., self.FIRST :].argmax(-1) + self.FIRST
        return torch.where(tokens == self.MASK, prediction, tokens)


def bert(
    vocabulary: int, max_length: int, *, width: int = 128, heads: int = 4, depth: int = 2, dropout: float = 0.0
) -> MaskedLanguageModel:
    """A masked language model with a transformer encoder; token 0 is padding, 1 the mask (book sec. 10.1.1)."""
    return MaskedLanguageModel(encoder(vocabulary, max_length, width=width, heads=heads, depth=depth, dropout=dropout))
