"""The squeeze of 2 × 2 pixels into four channels, and checkerboard masks (Dinh et al. 2017)."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pixel_shuffle, pixel_unshuffle


class Squeeze(nn.Module):
    """Rearrange four channels into 2 × 2 pixels; the inverse squeezes an image (book sec. 13.1).

    x[c, 2i + a, 2j + b] = z[4c + 2a + b, i, j],   log |det J| = 0

    >>> Squeeze()(torch.zeros(5, 4, 2, 2))[0].shape
    torch.Size([5, 1, 4, 4])
    """

    def forward(
        self, z: Float[Tensor, "batch squeezed rows columns"]
    ) -> tuple[Float[Tensor, "batch channels height width"], Float[Tensor, " batch"]]:
        if z.shape[1] % 4:
            raise ValueError(f"channels must be a multiple of 4; got channels={z.shape[1]}")
        return pixel_shuffle(z, 2), z.new_zeros(len(z))

    def inverse(
        self, x: Float[Tensor, "batch channels height width"]
    ) -> tuple[Float[Tensor, "batch squeezed rows columns"], Float[Tensor, " batch"]]:
        if x.shape[2] % 2 or x.shape[3] % 2:
            raise ValueError(f"height and width must be even; got height={x.shape[2]}, width={x.shape[3]}")
        return pixel_unshuffle(x, 2), x.new_zeros(len(x))


def checkerboard_channels(channels: int) -> tuple[int, ...]:
    """The squeezed channels of the black squares: the pixels with an even sum of row and column.

    A coupling that keeps them is the checkerboard coupling of Real NVP.
    """
    if channels < 4 or channels % 4:
        raise ValueError(f"channels must be a positive multiple of 4; got channels={channels}")
    return tuple(channel for channel in range(channels) if channel % 4 in (0, 3))
