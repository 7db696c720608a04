"""Rotary positions: queries and keys are turned by their place, so that scores know distances alone (Diehl sec. 3)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


def frequencies(width: int, *, base: float = 10_000.0) -> Float[Tensor, " half"]:
    """θ_i = base^(−2(i−1)/d), i = 1 … d/2: from one turn in 2π places to hardly any (Diehl sec. 3)."""
    if width < 2 or width % 2:
        raise ValueError(f"width must be even, a sine and a cosine for each frequency; got width={width}")
    return base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)


def rotate(
    x: Float[Tensor, "*batch time width"], cos: Float[Tensor, "time half"], sin: Float[Tensor, "time half"]
) -> Float[Tensor, "*batch time width"]:
    """R_m x_m without forming R_m: neighbours (x_1, x_2), (x_3, x_4), … are turned in their planes (Diehl sec. 3)."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


class Rotary(nn.Module):
    """R_m q and R_n k, whose inner product depends on m − n only (Su et al. 2021, Diehl sec. 3).

        ⟨R_m q, R_n k⟩ = ⟨R_{m−n} q, k⟩

    The blocks are [[cos mθ, −sin mθ], [sin mθ, cos mθ]] as in RoFormer; the notes print the transpose, which gives the
    same scores with m and n exchanged. Values are not turned.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, width: int, places: int, *, base: float = 10_000.0) -> None:
        super().__init__()
        angles = torch.arange(places, dtype=torch.float64)[:, None] * frequencies(width, base=base)
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)

    def turn(self, x: Float[Tensor, "batch heads time width"], start: int) -> Float[Tensor, "batch heads time width"]:
        end = start + x.shape[-2]
        if end > len(self.cos):
            raise ValueError(f"there are {len(self.cos)} places; got tokens up to place {end}")
        return rotate(x, self.cos[start:end].to(x.dtype), self.sin[start:end].to(x.dtype))

    def bias(self, query: Float[Tensor, "batch heads queries width"], keys: int) -> None:
        """None: the turning says it all."""
