"""Squares of 2 × 2 pixels as four channels: what a coupling keeps becomes a choice of channels (Dinh et al. 2017)."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pixel_shuffle, pixel_unshuffle


class Squeeze(nn.Module):
    """Four channels spread over a square of 2 × 2 pixels; its inverse squeezes the picture (book sec. 13.1).

    x[c, 2i + a, 2j + b] = z[4c + 2a + b, i, j],   log |det J| = 0
    """

    def forward(
        self, z: Float[Tensor, "batch squeezed rows columns"]
    ) -> tuple[Float[Tensor, "batch channels height width"], Float[Tensor, " batch"]]:
        if z.shape[1] % 4:
            raise ValueError(f"channels come in fours, one for each pixel of a square; got channels={z.shape[1]}")
        return pixel_shuffle(z, 2), z.new_zeros(len(z))

    def inverse(
        self, x: Float[Tensor, "batch channels height width"]
    ) -> tuple[Float[Tensor, "batch squeezed rows columns"], Float[Tensor, " batch"]]:
        if x.shape[2] % 2 or x.shape[3] % 2:
            raise ValueError(f"height and width must be even; got height={x.shape[2]}, width={x.shape[3]}")
        return pixel_unshuffle(x, 2), x.new_zeros(len(x))


def checkerboard(channels: int) -> tuple[int, ...]:
    """The squeezed channels of the black fields: those of the pixels with an even sum of row and column.

    A coupling that keeps them is the checkerboard coupling of Real NVP.
    """
    if channels < 4 or channels % 4:
        raise ValueError(f"a squeezed picture has a multiple of four channels; got channels={channels}")
    return tuple(channel for channel in range(channels) if channel % 4 in (0, 3))
