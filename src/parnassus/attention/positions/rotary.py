"""Rotary position embedding (RoPE): queries and keys are rotated by their positions (Diehl sec. 3)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.attention.positions.sinusoidal import frequencies, sines_and_cosines
from parnassus.errors import check_at_least_one


def apply_rotation(
    x: Float[Tensor, "*batch time width"], cos: Float[Tensor, "time half"], sin: Float[Tensor, "time half"]
) -> Float[Tensor, "*batch time width"]:
    """R_m x_m without forming R_m: the pairs (x_1, x_2), (x_3, x_4), … are rotated in their planes (Diehl sec. 3)."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


def rotation_matrix(position: float, width: int, *, base: float = 10_000.0) -> Float[Tensor, "{width} {width}"]:
    """R_m as a matrix, block-diagonal with [[cos mθ_i, −sin mθ_i], [sin mθ_i, cos mθ_i]] (Su et al. 2021, eq. 15).

    (Diehl sec. 3) prints its transpose, R_{−m}; either works if queries and keys use the same one.
    """
    angle = position * frequencies(width, base=base)
    cos, sin = angle.cos(), angle.sin()
    blocks = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
    matrix: Tensor = torch.block_diag(*blocks)
    return matrix


def long_range_bound(
    distances: Float[Tensor, " count"], width: int, *, base: float = 10_000.0
) -> Float[Tensor, " count"]:
    """Σ_{j=1}^{d/2} |S_j|, S_j = Σ_{i=1}^{j} exp(√−1 r θ_i), at each distance r (Su et al. 2021, eq. 37).

    By Abel's summation |⟨R_m q, R_n k⟩| ≤ max_i |h_{i+1} − h_i| Σ_j |S_j| for r = m − n, where h_i is the i-th complex
    product of q and k, and h_{d/2+1} = 0: the bound decays with the distance.
    """
    angle = distances[:, None] * frequencies(width, base=base).to(distances)
    return torch.polar(torch.ones_like(angle), angle).cumsum(1).abs().sum(1)


class Rotary(nn.Module):
    """R_m q and R_n k, whose inner product depends on m − n only (Su et al. 2021, Diehl sec. 3).

        ⟨R_m q, R_n k⟩ = ⟨R_{m−n} q, k⟩

    `width` is the width of a head. The blocks are [[cos mθ, −sin mθ], [sin mθ, cos mθ]] as in RoFormer; the notes print
    the transpose, which gives the same scores with m and n exchanged. Values are not rotated.

    >>> SelfAttention(16, 2, positions=Rotary(8, 32))(torch.zeros(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, width: int, max_length: int, *, base: float = 10_000.0) -> None:
        super().__init__()
        check_at_least_one(max_length=max_length)
        sin, cos = sines_and_cosines(torch.arange(max_length), frequencies(width, base=base)).float().unbind(-2)
        self.register_buffer("cos", cos.contiguous(), persistent=False)
        self.register_buffer("sin", sin.contiguous(), persistent=False)

    def rotate(self, x: Float[Tensor, "batch heads time width"], start: int) -> Float[Tensor, "batch heads time width"]:
        end, (max_length, half) = start + x.shape[-2], self.cos.shape
        if end > max_length:
            raise ValueError(f"there are {max_length} positions; got tokens up to position {end}")
        if x.shape[-1] != 2 * half:
            raise ValueError(f"heads must have width {2 * half}; got width {x.shape[-1]}")
        return apply_rotation(x, self.cos[start:end].to(x.dtype), self.sin[start:end].to(x.dtype))

    def bias(self, query: Float[Tensor, "batch heads queries width"], keys: int) -> None:
        """None: positions enter by rotation only."""
