"""BERT: some words are hidden, and both sides of the gap tell what stood there (book sec. 10.1.1)."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from parnassus.attention.encoder import Encoder, encoder
from parnassus.attention.recurrent_encoder import RecurrentEncoder


class Hidden(NamedTuple):
    """A text with gaps, and where they are."""

    tokens: Int[Tensor, "batch time"]
    chosen: Bool[Tensor, "batch time"]


def hide(
    tokens: Int[Tensor, "batch time"],
    *,
    mask: int,
    ordinary: range,
    share: float = 0.15,
    generator: torch.Generator | None = None,
) -> Hidden:
    """Each ordinary token is chosen with probability `share`; 8 of 10 chosen become `mask` (Devlin et al. 2019).

    One in ten becomes an ordinary token drawn at random, one in ten stays: so the model cannot trust a word because
    it is there, and learns to represent words that are not hidden. Tokens that are not `ordinary`, such as filler,
    are left alone (book sec. 10.1.1).
    """
    if not 0 < share <= 1:
        raise ValueError(f"the share of tokens to hide must satisfy 0 < share ≤ 1; got share={share}")
    if len(ordinary) < 1 or ordinary.step != 1:
        raise ValueError(f"the ordinary tokens must be a range without gaps; got {ordinary}")
    draw, fate = (torch.rand(tokens.shape, generator=generator, device=tokens.device) for _ in range(2))
    chosen = (draw < share) & (tokens >= ordinary.start) & (tokens < ordinary.stop)
    other = torch.randint(ordinary.start, ordinary.stop, tokens.shape, generator=generator, device=tokens.device)
    corrupted = torch.where(fate < 0.8, torch.full_like(tokens, mask), torch.where(fate < 0.9, other, tokens))
    return Hidden(torch.where(chosen, corrupted, tokens), chosen)


class MaskedLanguageModel(nn.Module):
    """p(x_t | all that is not hidden) at each place t, by an encoder that sees both sides (book sec. 10.1.1).

    Its vocabulary is that of the encoder: filler 0, the mask 1, and from 2 on what texts are made of. The last layer is
    the embedding, transposed, with a bias for each token.
    """

    MASK = 1
    FIRST = 2  # ordinary token

    def __init__(self, encoder: Encoder | RecurrentEncoder, *, share: float = 0.15) -> None:
        super().__init__()
        if encoder.vocabulary <= self.FIRST:
            raise ValueError(f"there must be a token beside filler and mask; got vocabulary={encoder.vocabulary}")
        self.encoder, self.share = encoder, share
        self.change = nn.Sequential(nn.Linear(encoder.width, encoder.width), nn.GELU(), nn.LayerNorm(encoder.width))
        self.bias = nn.Parameter(torch.zeros(encoder.vocabulary))

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time vocabulary"]:
        """Logits of what stands at each place, or stood there before it was hidden."""
        return linear(self.change(self.encoder(tokens)), self.encoder.embedding.tokens.weight, self.bias)

    def loss(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, ""]:
        """−log p of the tokens that `hide` chooses, a mean over them alone: nothing is asked of what can be seen."""
        return self.gap_loss(tokens, self.hide(tokens))

    def gap_loss(self, tokens: Int[Tensor, "batch time"], hidden: Hidden) -> Float[Tensor, ""]:
        """−log p(x_t | what is left) over the chosen places t; 0 if there are none."""
        chosen = hidden.chosen.to(torch.float32)
        nll = cross_entropy(self(hidden.tokens).mT, tokens, reduction="none")
        return (nll * chosen).sum() / chosen.sum().clamp_min(1)

    def hide(self, tokens: Int[Tensor, "batch time"], *, generator: torch.Generator | None = None) -> Hidden:
        """Gaps for this model: filler and mask are never chosen."""
        ordinary = range(self.FIRST, self.encoder.vocabulary)
        return hide(tokens, mask=self.MASK, ordinary=ordinary, share=self.share, generator=generator)

    @torch.no_grad()
    def fill(self, tokens: Int[Tensor, "batch time"]) -> Int[Tensor, "batch time"]:
        """The likeliest ordinary token at each masked place; the others stay."""
        guess = self(tokens)[..., self.FIRST :].argmax(-1) + self.FIRST
        return torch.where(tokens == self.MASK, guess, tokens)


def bert(
    vocabulary: int, places: int, *, width: int = 128, heads: int = 4, depth: int = 2, dropout: float = 0.0
) -> MaskedLanguageModel:
    """A transformer encoder that fills gaps; of `vocabulary` tokens, 0 is filler and 1 the mask (book sec. 10.1.1)."""
    return MaskedLanguageModel(encoder(vocabulary, places, width=width, heads=heads, depth=depth, dropout=dropout))
