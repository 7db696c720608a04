"""Sinusoidal positional encoding: a sine and a cosine of the position at each frequency (Diehl sec. 3)."""

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor

from parnassus.errors import check_positive
from parnassus.layers.token_embedding import TokenEmbedding


def frequencies(width: int, *, base: float = 10_000.0) -> Float[Tensor, " half"]:
    """θ_i = base^(−2(i−1)/d), i = 1 … d/2, a geometric sequence from 1 down to nearly 1/base (Diehl sec. 3)."""
    if width < 2 or width % 2:
        raise ValueError(f"width must be positive and even; got width={width}")
    check_positive(base=base)
    return base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)


def sines_and_cosines(
    positions: Num[Tensor, "*positions"], omega: Float[Tensor, " half"]
) -> Float[Tensor, "*positions 2 half"]:
    """sin(ω_i t) and cos(ω_i t), stacked along the last axis but one, for each position t and frequency ω_i."""
    angle = positions[..., None] * omega
    return torch.stack([angle.sin(), angle.cos()], -2)


def sinusoidal_encoding(
    positions: Float[Tensor, "*positions"], width: int, *, base: float = 10_000.0
) -> Float[Tensor, "*positions {width}"]:
    """pe_{t,2i} = sin(t / base^{2i/d}), pe_{t,2i+1} = cos(t / base^{2i/d}), i = 0 … d/2 − 1 (Diehl sec. 3).

        ‖pe_t‖² = d/2,   ⟨pe_s, pe_t⟩ = Σ_i cos((s − t) θ_i),   pe_{t+k} = R_kᵀ pe_t

    with R_k from `rotation_matrix`. The position t runs over the sequence from 0; the notes let it run from 1 to the
    width d.
    """
    encoding: Tensor = sines_and_cosines(positions, frequencies(width, base=base).to(positions)).mT
    return encoding.flatten(-2)


class SinusoidalEmbedding(TokenEmbedding):
    """√d token(x_t) + pe_t: fixed positions, without a maximum length (Vaswani et al. 2017, Diehl sec. 3).

    Token vectors are initialised with norm about 1; the factor √d brings them to the scale of the encoding.

    >>> SinusoidalEmbedding(100, 16)(torch.tensor([[5, 7, 3]])).shape
    torch.Size([1, 3, 16])
    """

    def __init__(self, vocabulary: int, width: int, *, base: float = 10_000.0) -> None:
        super().__init__(vocabulary, width)
        frequencies(width, base=base)  # validates width and base
        self.base = base
        torch.nn.init.normal_(self.tokens.weight, std=width**-0.5)

    def forward(self, tokens: Int[Tensor, "batch time"], start: int = 0) -> Float[Tensor, "batch time width"]:
        weight = self.tokens.weight
        positions = torch.arange(start, start + tokens.shape[1], dtype=torch.float32, device=tokens.device)
        encoding = sinusoidal_encoding(positions, weight.shape[1], base=self.base).to(weight.dtype)
        embedded: Tensor = self.tokens(tokens) * weight.shape[1] ** 0.5 + encoding
        return embedded
