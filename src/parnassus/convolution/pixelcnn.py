"""PixelCNN: pictures pixel by pixel, each from those before it, by masked convolutions (Diehl sec. 5.2).

The notes have only the name; the model is that of van den Oord, Kalchbrenner and Kavukcuoglu (2016).
"""

from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


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


class PixelCNN(nn.Module):
    """A law over pictures of one channel whose pixels take `levels` values 0 … levels − 1 (Diehl sec. 5.2).

        p(x) = Π_i p(x_i | x_1, …, x_{i−1}),   pixels row by row, each row from left to right

    One pass gives all factors at once, so the likelihood is exact; drawing takes a pass for every pixel. Stacked 3 × 3
    filters leave a blind spot to the upper right, which the larger first filter makes smaller.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        *,
        levels: int = 2,
        channels: int = 32,
        blocks: int = 4,
        first: int = 7,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if levels < 2 or min(shape) < 1:
            raise ValueError(f"need at least two levels and one pixel; got levels={levels}, shape={shape}")
        self.shape = shape
        self.levels = levels
        self.network = nn.Sequential(
            MaskedConv2d(1, channels, first, sees_itself=False),
            *(MaskedResidual(channels, dropout=dropout) for _ in range(blocks)),
            nn.ReLU(),
            nn.Conv2d(channels, levels, 1),
        )

    def forward(self, x: Int[Tensor, "batch height width"]) -> Float[Tensor, "batch levels height width"]:
        """Logits of every pixel's law given the pixels before it."""
        grey = 2 * x[:, None].to(next(self.parameters()).dtype) / (self.levels - 1) - 1  # −1 … 1
        logits: Tensor = self.network(grey)
        return logits

    def log_probs(self, x: Int[Tensor, "batch height width"]) -> Float[Tensor, "batch height width"]:
        """The factors log p(x_i | x_1, …, x_{i−1}), each at its pixel's place."""
        if x.numel() and not (int(x.min()) >= 0 and int(x.max()) < self.levels):
            raise ValueError(f"pixels take the values 0 … {self.levels - 1}; got {int(x.min())} … {int(x.max())}")
        laws: Tensor = self(x).log_softmax(1)
        return laws.gather(1, x[:, None])[:, 0]

    def log_prob(self, x: Int[Tensor, "batch height width"]) -> Float[Tensor, " batch"]:
        """The exact logarithm of p(x), in nats for a picture."""
        return self.log_probs(x).sum((1, 2))

    def loss(self, x: Int[Tensor, "batch height width"]) -> Float[Tensor, ""]:
        """Mean negative log-likelihood of a pixel, in nats."""
        return -self.log_probs(x).mean()

    @torch.no_grad()
    def complete(
        self, x: Int[Tensor, "batch height width"], *, rows: int, temperature: float = 1.0
    ) -> Int[Tensor, "batch height width"]:
        """The first `rows` rows kept, the other pixels drawn one after the other given all before them."""
        if not temperature > 0:
            raise ValueError(f"the temperature must be positive; got temperature={temperature}")
        drawn = x.clone()
        drawn[:, rows:] = 0
        for row in range(rows, x.shape[1]):
            for column in range(x.shape[2]):
                above = drawn[:, : row + 1]  # what lies below cannot matter
                law = (self(above)[:, :, row, column] / temperature).softmax(1)
                drawn[:, row, column] = torch.multinomial(law, 1)[:, 0]
        return drawn

    def sample(self, count: int, *, temperature: float = 1.0) -> Int[Tensor, "{count} height width"]:
        """New pictures, drawn from the first pixel to the last."""
        device = next(self.parameters()).device
        blank = torch.zeros(count, *self.shape, dtype=torch.int64, device=device)
        return self.complete(blank, rows=0, temperature=temperature)


def bits_per_pixel(nats: float, pixels: int) -> float:
    """A picture's negative log-likelihood in nats as bits for each of its pixels."""
    if pixels < 1:
        raise ValueError(f"a picture needs at least one pixel; got pixels={pixels}")
    return nats / pixels / log(2)
