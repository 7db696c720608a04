"""Gated PixelCNN: two stacks of convolutions that between them see every pixel before (book sec. 13.1).

After van den Oord et al. (2016), "Conditional image generation with PixelCNN decoders".
"""

from collections.abc import Iterator

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

from parnassus.flows.pixel_model import PixelModel, laws_by_passes


def gate(x: Float[Tensor, "batch twice height width"]) -> Float[Tensor, "batch half height width"]:
    """tanh(a) ⊙ σ(b), where a and b are the two halves of the channels."""
    value, opening = x.chunk(2, dim=1)
    return value.tanh() * opening.sigmoid()


class Above(nn.Module):
    """A convolution over a pixel's row, whole, and the size // 2 rows above it."""

    def __init__(self, inputs: int, outputs: int, size: int) -> None:
        super().__init__()
        if size < 1 or size % 2 == 0:
            raise ValueError(f"a filter needs a middle: an odd size; got size={size}")
        self.convolution = nn.Conv2d(inputs, outputs, (size // 2 + 1, size), padding=(0, size // 2))

    def forward(self, x: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs height width"]:
        found: Tensor = self.convolution(pad(x, (0, 0, self.convolution.kernel_size[0] - 1, 0)))
        return found


class Left(nn.Module):
    """A convolution over the `reach` pixels to the left of a pixel in its row, and the pixel if it `sees_itself`."""

    def __init__(self, inputs: int, outputs: int, reach: int, *, sees_itself: bool) -> None:
        super().__init__()
        self.reach = reach
        self.convolution = nn.Conv2d(inputs, outputs, (1, reach + sees_itself))

    def forward(self, x: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs height width"]:
        found: Tensor = self.convolution(pad(x, (self.reach, 0)))
        return found[..., : x.shape[3]]


class GatedLayer(nn.Module):
    """One step of both stacks, a gate each; the vertical one tells the horizontal one of the rows above.

        v′ = gate(A v)
        h′ = h + C₁ₓ₁ gate(L h + C₁ₓ₁ A v lowered by a row)

    v at a pixel knows all rows down to its own, so it may tell only the pixels one row below.
    """

    def __init__(self, channels: int, size: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.above = Above(channels, 2 * channels, size)
        self.left = Left(channels, 2 * channels, size // 2, sees_itself=True)
        self.tell = nn.Conv2d(2 * channels, 2 * channels, 1)
        self.leave = nn.Sequential(nn.Dropout2d(dropout), nn.Conv2d(channels, channels, 1))

    def forward(
        self,
        vertical: Float[Tensor, "batch channels height width"],
        horizontal: Float[Tensor, "batch channels height width"],
    ) -> tuple[Float[Tensor, "batch channels height width"], Float[Tensor, "batch channels height width"]]:
        above = self.above(vertical)
        change: Tensor = self.leave(gate(self.left(horizontal) + self.tell(lowered(above))))
        return gate(above), horizontal + change


def lowered(x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch channels height width"]:
    """Every row in the place of the one below it, zeros in the first."""
    return pad(x, (0, 0, 1, 0))[:, :, :-1]


class GatedStack(nn.Module):
    """A vertical stack over all rows above, a horizontal one over the row so far: no blind spot (book sec. 13.1)."""

    def __init__(self, *, levels: int, channels: int, layers: int, size: int, dropout: float) -> None:
        super().__init__()
        self.enter_above = Above(1, channels, size)
        self.enter_left = Left(1, channels, size // 2, sees_itself=False)
        self.tell = nn.Conv2d(channels, channels, 1)
        self.layers = nn.ModuleList(GatedLayer(channels, size, dropout=dropout) for _ in range(layers))
        self.leave = nn.Sequential(
            nn.ReLU(), nn.Conv2d(channels, channels, 1), nn.ReLU(), nn.Conv2d(channels, levels, 1)
        )

    def forward(self, grey: Float[Tensor, "batch 1 height width"]) -> Float[Tensor, "batch levels height width"]:
        vertical: Tensor = self.enter_above(grey)
        horizontal: Tensor = self.enter_left(grey) + self.tell(lowered(vertical))
        for layer in self.layers:
            vertical, horizontal = layer(vertical, horizontal)
        logits: Tensor = self.leave(horizontal)
        return logits

    def laws(self, grey: Float[Tensor, "batch 1 height width"], rows: int) -> Iterator[Float[Tensor, "batch levels"]]:
        """The laws one by one: a pass for every pixel."""
        return laws_by_passes(self, grey, rows)


def gated_pixelcnn(
    shape: tuple[int, int],
    *,
    levels: int = 2,
    channels: int = 32,
    layers: int = 5,
    size: int = 5,
    dropout: float = 0.0,
) -> PixelModel:
    """A law over pictures by two stacks of gated convolutions (book sec. 13.1)."""
    network = GatedStack(levels=levels, channels=channels, layers=layers, size=size, dropout=dropout)
    return PixelModel(network, shape, levels=levels)
