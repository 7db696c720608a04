"""PixelCNN: masked convolutions over the pixels before each pixel (book sec. 13.1, Diehl sec. 5.2).

Both texts mention it without details; the model follows van den Oord, Kalchbrenner and Kavukcuoglu (2016).
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.flows.pixels.pixel_model import PixelModel, StatelessNetwork


def causal_filter_mask(kernel_size: int, *, include_centre: bool) -> Float[Tensor, "{kernel_size} {kernel_size}"]:
    """A filter mask of ones in the rows above and to the left in the same row (Diehl sec. 5.2).

    Without the centre it is mask A, for the first layer; with the centre mask B, for all later layers.
    """
    if kernel_size < 1 or kernel_size % 2 == 0:
        raise ValueError(f"kernel_size must be odd; got kernel_size={kernel_size}")
    flat = torch.zeros(kernel_size * kernel_size)
    flat[: kernel_size * kernel_size // 2 + include_centre] = 1.0
    return flat.reshape(kernel_size, kernel_size)


class MaskedConv2d(nn.Module):
    """A convolution with zero padding whose filters are masked to the pixels before.

    >>> MaskedConv2d(1, 8, 3, include_centre=False)(torch.zeros(5, 1, 4, 4)).shape
    torch.Size([5, 8, 4, 4])
    """

    mask: Tensor

    def __init__(self, inputs: int, outputs: int, kernel_size: int, *, include_centre: bool) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(inputs, outputs, kernel_size, padding=kernel_size // 2)
        self.register_buffer("mask", causal_filter_mask(kernel_size, include_centre=include_centre), persistent=False)

    def forward(self, x: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs height width"]:
        weight = self.convolution.weight * self.mask
        return nn.functional.conv2d(x, weight, self.convolution.bias, padding=self.convolution.padding)


class MaskedResidual(nn.Module):
    """x + C₁ₓ₁ ReLU(C₃ₓ₃ ReLU(C₁ₓ₁ ReLU(x))) with mask B and half as many inner channels."""

    def __init__(self, channels: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        inner = max(1, channels // 2)
        self.branch = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(channels, inner, 1),
            nn.ReLU(),
            MaskedConv2d(inner, inner, 3, include_centre=True),
            nn.ReLU(),
            nn.Dropout2d(dropout),
            nn.Conv2d(inner, channels, 1),
        )

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch channels height width"]:
        change: Tensor = self.branch(x)
        return x + change


class MaskedStack(StatelessNetwork, nn.Sequential):
    """A convolution with mask A, residual blocks with mask B, and logits for every pixel (book sec. 13.1).

    One pass gives the conditionals of all pixels. Stacked 3 × 3 filters have a blind spot to the upper right; a larger
    first filter reduces it, `GatedStack` has none.

    >>> stack = MaskedStack(MaskedConv2d(1, 2, 3, include_centre=False))
    >>> stack(torch.zeros(5, 1, 4, 4)).shape
    torch.Size([5, 2, 4, 4])
    """


def pixelcnn(
    shape: tuple[int, int],
    *,
    levels: int = 2,
    channels: int = 32,
    blocks: int = 4,
    first_kernel_size: int = 7,
    dropout: float = 0.0,
) -> PixelModel:
    """PixelCNN: a distribution of images by masked convolutions (book sec. 13.1, Diehl sec. 5.2)."""
    network = MaskedStack(
        MaskedConv2d(1, channels, first_kernel_size, include_centre=False),
        *(MaskedResidual(channels, dropout=dropout) for _ in range(blocks)),
        nn.ReLU(),
        nn.Conv2d(channels, levels, 1),
    )
    return PixelModel(network, shape, levels=levels)
