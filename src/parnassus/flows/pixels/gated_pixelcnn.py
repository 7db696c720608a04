"""Gated PixelCNN: a vertical and a horizontal stack of convolutions without blind spot (book sec. 13.1).

After van den Oord et al. (2016), "Conditional image generation with PixelCNN decoders".
"""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

from parnassus.flows.pixels.pixel_model import PixelModel, StatelessNetwork


def gated_activation(x: Float[Tensor, "batch twice height width"]) -> Float[Tensor, "batch half height width"]:
    """tanh(a) ⊙ σ(b), where a and b are the two halves of the channels."""
    value, gate = x.chunk(2, dim=1)
    return value.tanh() * gate.sigmoid()


class VerticalConv2d(nn.Module):
    """A convolution over the row of a pixel and the kernel_size // 2 rows above it."""

    def __init__(self, inputs: int, outputs: int, kernel_size: int) -> None:
        super().__init__()
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise ValueError(f"kernel_size must be odd; got kernel_size={kernel_size}")
        self.convolution = nn.Conv2d(
            inputs, outputs, (kernel_size // 2 + 1, kernel_size), padding=(0, kernel_size // 2)
        )

    def forward(self, x: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs height width"]:
        y: Tensor = self.convolution(pad(x, (0, 0, self.convolution.kernel_size[0] - 1, 0)))
        return y


class HorizontalConv2d(nn.Module):
    """A convolution over the `reach` pixels to the left of a pixel, and the pixel itself with `include_centre`."""

    def __init__(self, inputs: int, outputs: int, reach: int, *, include_centre: bool) -> None:
        super().__init__()
        self.reach = reach
        self.convolution = nn.Conv2d(inputs, outputs, (1, reach + include_centre))

    def forward(self, x: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs height width"]:
        y: Tensor = self.convolution(pad(x, (self.reach, 0)))
        return y[..., : x.shape[3]]


class GatedLayer(nn.Module):
    """One gated layer of both stacks, with a connection from the vertical to the horizontal stack.

        v′ = gate(A v)
        h′ = h + C₁ₓ₁ gate(L h + C₁ₓ₁ A v shifted down by one row)

    v at a pixel depends on all rows down to its own, so it is shifted to the row below.
    """

    def __init__(self, channels: int, kernel_size: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.vertical = VerticalConv2d(channels, 2 * channels, kernel_size)
        self.horizontal = HorizontalConv2d(channels, 2 * channels, kernel_size // 2, include_centre=True)
        self.vertical_to_horizontal = nn.Conv2d(2 * channels, 2 * channels, 1)
        self.output = nn.Sequential(nn.Dropout2d(dropout), nn.Conv2d(channels, channels, 1))

    def forward(
        self,
        vertical: Float[Tensor, "batch channels height width"],
        horizontal: Float[Tensor, "batch channels height width"],
    ) -> tuple[Float[Tensor, "batch channels height width"], Float[Tensor, "batch channels height width"]]:
        from_above = self.vertical(vertical)
        change: Tensor = self.output(
            gated_activation(self.horizontal(horizontal) + self.vertical_to_horizontal(shift_down(from_above)))
        )
        return gated_activation(from_above), horizontal + change


def shift_down(x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch channels height width"]:
    """Shift all rows down by one; the first row becomes zero."""
    return pad(x, (0, 0, 1, 0))[:, :, :-1]


class GatedStack(StatelessNetwork):
    """A vertical stack over the rows above and a horizontal stack over the row to the left (book sec. 13.1).

    >>> stack = GatedStack(levels=2, channels=8, num_layers=1, kernel_size=3, dropout=0.0)
    >>> stack(torch.zeros(5, 1, 4, 4)).shape
    torch.Size([5, 2, 4, 4])
    """

    def __init__(self, *, levels: int, channels: int, num_layers: int, kernel_size: int, dropout: float) -> None:
        super().__init__()
        self.vertical_input = VerticalConv2d(1, channels, kernel_size)
        self.horizontal_input = HorizontalConv2d(1, channels, kernel_size // 2, include_centre=False)
        self.vertical_to_horizontal = nn.Conv2d(channels, channels, 1)
        self.layers = nn.ModuleList(GatedLayer(channels, kernel_size, dropout=dropout) for _ in range(num_layers))
        self.output = nn.Sequential(
            nn.ReLU(), nn.Conv2d(channels, channels, 1), nn.ReLU(), nn.Conv2d(channels, levels, 1)
        )

    def forward(self, grey: Float[Tensor, "batch 1 height width"]) -> Float[Tensor, "batch levels height width"]:
        vertical: Tensor = self.vertical_input(grey)
        horizontal: Tensor = self.horizontal_input(grey) + self.vertical_to_horizontal(shift_down(vertical))
        for layer in self.layers:
            vertical, horizontal = layer(vertical, horizontal)
        logits: Tensor = self.output(horizontal)
        return logits


def gated_pixelcnn(
    shape: tuple[int, int],
    *,
    levels: int = 2,
    channels: int = 32,
    num_layers: int = 5,
    kernel_size: int = 5,
    dropout: float = 0.0,
) -> PixelModel:
    """Gated PixelCNN: a distribution of images by two stacks of gated convolutions (book sec. 13.1)."""
    network = GatedStack(
        levels=levels, channels=channels, num_layers=num_layers, kernel_size=kernel_size, dropout=dropout
    )
    return PixelModel(network, shape, levels=levels)
