"""Autoregressive models of images: a product of conditionals given by a causal network (book sec. 13.1)."""

from collections.abc import Iterator
from math import log
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_at_least_one, check_indices, check_positive
from parnassus.layers.evaluation_mode import evaluation_mode


@runtime_checkable
class CausalNetwork(Protocol):
    """A network whose output at a pixel depends only on the pixels before it in raster order."""

    def __call__(self, grey: Tensor) -> Tensor:
        """Logits (batch, levels, height, width) of all pixels from grey values (batch, 1, height, width)."""
        ...

    def pixel_logits(self, grey: Tensor, first_row: int) -> Iterator[Tensor]:
        """Yield logits (batch, levels) pixel by pixel from row `first_row` on.

        `grey` is read again before each pixel: the caller writes the sampled values into it in between.
        """
        ...


class StatelessNetwork(nn.Module):
    """A causal network that computes each pixel by a pass over the rows down to its own."""

    def pixel_logits(
        self, grey: Float[Tensor, "batch 1 height width"], first_row: int
    ) -> Iterator[Float[Tensor, "batch levels"]]:
        """Yield logits pixel by pixel, with one pass per pixel."""
        for row in range(first_row, grey.shape[2]):
            for column in range(grey.shape[3]):
                yield self(grey[:, :, : row + 1])[:, :, row, column]  # rows below have no influence


class PixelModel(nn.Module):
    """A distribution of one-channel images whose n² pixels take values 0 … levels − 1 (book sec. 13.1).

        p(x) = Π_i p(x_i | x_1, …, x_{i−1}),   pixels in raster order

    Each factor is a softmax, so p sums to one and the likelihood is exact. In training one pass gives all factors;
    sampling takes one step per pixel. With two levels the factors are Bernoulli distributions.
    """

    def __init__(self, network: nn.Module, shape: tuple[int, int], *, levels: int = 2) -> None:
        super().__init__()
        if levels < 2 or min(shape) < 1:
            raise ValueError(f"levels must be at least 2 and shape positive; got levels={levels}, shape={shape}")
        if not isinstance(network, CausalNetwork):
            raise ValueError(f"network must have the method `pixel_logits`; got {type(network).__name__}")
        self.network: CausalNetwork = network
        self.shape = shape
        self.levels = levels

    def to_grey(self, x: Int[Tensor, "batch height width"]) -> Float[Tensor, "batch 1 height width"]:
        """Levels as grey values in [−1, 1]."""
        return 2 * x[:, None].to(next(self.parameters()).dtype) / (self.levels - 1) - 1

    def forward(self, x: Int[Tensor, "batch height width"]) -> Float[Tensor, "batch levels height width"]:
        """Logits of every pixel given the pixels before it."""
        return self.network(self.to_grey(x))

    def log_probs(self, x: Int[Tensor, "batch height width"]) -> Float[Tensor, "batch height width"]:
        """The factors log p(x_i | x_1, …, x_{i−1}) at the positions of their pixels."""
        check_indices(self.levels, pixels=x)
        log_probs: Tensor = self(x).log_softmax(1)
        return log_probs.gather(1, x[:, None])[:, 0]

    @accepts_arrays
    def log_prob(self, x: Int[Tensor, "batch height width"]) -> Float[Tensor, " batch"]:
        """The exact log-likelihood log p(x) of each image, in nats."""
        return self.log_probs(x).sum((1, 2))

    def loss(self, x: Int[Tensor, "batch height width"]) -> Float[Tensor, ""]:
        """Mean negative log-likelihood per pixel, in nats."""
        return -self.log_probs(x).mean()

    @torch.no_grad()
    def complete(
        self, x: Int[Tensor, "batch height width"], *, kept_rows: int, temperature: float = 1.0
    ) -> Int[Tensor, "batch height width"]:
        """Keep the first `kept_rows` rows and sample the other pixels."""
        check_positive(temperature=temperature)
        if not 0 <= kept_rows <= x.shape[1]:
            raise ValueError(f"kept_rows must be from 0 to {x.shape[1]}; got kept_rows={kept_rows}")
        images = x.clone()
        images[:, kept_rows:] = 0
        grey = self.to_grey(images)
        for index, logits in enumerate(self.network.pixel_logits(grey, kept_rows)):
            row, column = kept_rows + index // x.shape[2], index % x.shape[2]
            pixel = torch.multinomial((logits / temperature).softmax(1), 1)
            images[:, row, column] = pixel[:, 0]
            grey[:, :, row, column] = 2 * pixel.to(grey.dtype) / (self.levels - 1) - 1
        return images

    def sample(self, count: int, *, temperature: float = 1.0) -> Int[Tensor, "{count} height width"]:
        """Sample images from the first pixel to the last."""
        device = next(self.parameters()).device
        blank = torch.zeros(count, *self.shape, dtype=torch.int64, device=device)
        return self.complete(blank, kept_rows=0, temperature=temperature)


@torch.no_grad()
def mean_nll(model: PixelModel, x: Int[Tensor, "batch height width"]) -> float:
    """Mean negative log-likelihood of images in nats, in evaluation mode and in batches of 500."""
    with evaluation_mode(model):
        total = sum(float(model.log_prob(part).sum()) for part in x.split(500))
    return -total / len(x)


def threshold_pixels(x: Float[Tensor, "batch channels height width"]) -> Int[Tensor, "batch height width"]:
    """One-channel images in [0, 1] as black and white: 1 where a pixel exceeds ½, else 0."""
    if x.shape[1] != 1:
        raise ValueError(f"images must have one channel; got channels={x.shape[1]}")
    return (x[:, 0] > 0.5).long()


def bits_per_pixel(nats: float, pixels: int) -> float:
    """Bits per pixel from the negative log-likelihood of an image in nats."""
    check_at_least_one(pixels=pixels)
    return nats / pixels / log(2)
