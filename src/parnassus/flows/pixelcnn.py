"""PixelCNN: each pixel from those before it, by masked convolutions (book sec. 13.1, Diehl sec. 5.2).

Both texts have little more than the name; the model is that of van den Oord, Kalchbrenner and Kavukcuoglu (2016).
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.flows.pixel_model import PixelModel, laws_by_passes


def causal_mask(size: int, *, sees_itself: bool) -> Float[Tensor, "{size} {size}"]:
    """Ones where a filter may look: the rows above, and in its own row what is to the left (Diehl sec. 5.2).

    Without itself it is mask A, for the picture; with itself mask B, for layers whose inputs know only the past.
    """
    if size < 1 or size % 2 == 0:
        raise ValueError(f"a masked filter needs a middle: an odd size; got size={size}")
    flat = torch.zeros(size * size)
    flat[: size * size // 2 + sees_itself] = 1.0
    return flat.reshape(size, size)


class MaskedConv2d(nn.Module):
    """A convolution that keeps the picture's size and never looks at pixels that come later."""

    mask: Tensor

    def __init__(self, inputs: int, outputs: int, size: int, *, sees_itself: bool) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(inputs, outputs, size, padding=size // 2)
        self.register_buffer("mask", causal_mask(size, sees_itself=sees_itself), persistent=False)

    def forward(self, x: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs height width"]:
        weight = self.convolution.weight * self.mask
        return nn.functional.conv2d(x, weight, self.convolution.bias, padding=self.convolution.padding)


class MaskedResidual(nn.Module):
    """x + C₁ₓ₁ ReLU(C₃ₓ₃ ReLU(C₁ₓ₁ ReLU(x))) with mask B and half the channels inside."""

    def __init__(self, channels: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        inner = max(1, channels // 2)
        self.body = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(channels, inner, 1),
            nn.ReLU(),
            MaskedConv2d(inner, inner, 3, sees_itself=True),
            nn.ReLU(),
            nn.Dropout2d(dropout),
            nn.Conv2d(inner, channels, 1),
        )

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch channels height width"]:
        change: Tensor = self.body(x)
        return x + change


class MaskedStack(nn.Sequential):
    """A first filter with mask A, residual blocks with mask B, and logits for every pixel (book sec. 13.1).

    One pass gives the laws of all pixels. However many 3 × 3 filters are stacked, a blind spot to the upper right stays
    unseen; a larger first filter makes it smaller, `GatedStack` has none.
    """

    def laws(self, grey: Float[Tensor, "batch 1 height width"], rows: int) -> Iterator[Float[Tensor, "batch levels"]]:
        """The laws one by one: a pass for every pixel."""
        return laws_by_passes(self, grey, rows)


def pixelcnn(
    shape: tuple[int, int],
    *,
    levels: int = 2,
    channels: int = 32,
    blocks: int = 4,
    first: int = 7,
    dropout: float = 0.0,
) -> PixelModel:
    """A law over pictures by masked convolutions (book sec. 13.1, Diehl sec. 5.2)."""
    network = MaskedStack(
        MaskedConv2d(1, channels, first, sees_itself=False),
        *(MaskedResidual(channels, dropout=dropout) for _ in range(blocks)),
        nn.ReLU(),
        nn.Conv2d(channels, levels, 1),
    )
    return PixelModel(network, shape, levels=levels)
