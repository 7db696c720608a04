"""Positions as waves: a sine and a cosine at each of many frequencies, like the hands of a clock (Diehl sec. 3)."""

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor

from parnassus.attention.embedding import TokenEmbedding


def frequencies(width: int, *, base: float = 10_000.0) -> Float[Tensor, " half"]:
    """θ_i = base^(−2(i−1)/d), i = 1 … d/2: from one turn in 2π places to hardly any (Diehl sec. 3)."""
    if width < 2 or width % 2:
        raise ValueError(f"width must be even, a sine and a cosine for each frequency; got width={width}")
    if not base > 0:
        raise ValueError(f"the base of the frequencies must be positive; got base={base}")
    return base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)


def waves(places: Num[Tensor, "*places"], omega: Float[Tensor, " half"]) -> Float[Tensor, "*places 2 half"]:
    """sin(ω_i t) and, below it, cos(ω_i t) for every place t and every frequency ω_i."""
    angle = places[..., None] * omega
    return torch.stack([angle.sin(), angle.cos()], -2)


def sinusoidal(
    places: Float[Tensor, "*places"], width: int, *, base: float = 10_000.0
) -> Float[Tensor, "*places {width}"]:
    """pe_{t,2i} = sin(t / base^{2i/d}), pe_{t,2i+1} = cos(t / base^{2i/d}), i = 0 … d/2 − 1 (Diehl sec. 3).

        ‖pe_t‖² = d/2,   ⟨pe_s, pe_t⟩ = Σ_i cos((s − t) θ_i),   pe_{t+k} = R_kᵀ pe_t

    where R_k is that of `rotation`. The place t runs over the sequence, from 0; the notes let it run from 1 to d, the
    width.
    """
    code: Tensor = waves(places, frequencies(width, base=base).to(places)).mT
    return code.flatten(-2)


class SinusoidalEmbedding(TokenEmbedding):
    """√d token(x_t) + pe_t: nothing is learned of places, and none is too far (Vaswani et al. 2017, Diehl sec. 3).

    Token vectors begin with length about 1; the root makes them as large as the waves they are added to.
    """

    def __init__(self, vocabulary: int, width: int, *, base: float = 10_000.0) -> None:
        super().__init__(vocabulary, width)
        frequencies(width, base=base)  # an odd width is refused here, and not at the first batch
        self.base = base
        torch.nn.init.normal_(self.tokens.weight, std=width**-0.5)

    def forward(self, tokens: Int[Tensor, "batch time"], start: int = 0) -> Float[Tensor, "batch time width"]:
        weight = self.tokens.weight
        places = torch.arange(start, start + tokens.shape[1], dtype=torch.float32, device=tokens.device)
        code = sinusoidal(places, weight.shape[1], base=self.base).to(weight.dtype)
        embedded: Tensor = self.tokens(tokens) * weight.shape[1] ** 0.5 + code
        return embedded
