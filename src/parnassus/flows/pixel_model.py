"""Pictures pixel by pixel, each from those before it: the law that any causal network makes (book sec. 13.1)."""

from collections.abc import Callable, Iterator
from math import log
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


@runtime_checkable
class CausalNetwork(Protocol):
    """A network whose output at a pixel knows only the pixels before it, row by row and from left to right."""

    def __call__(self, grey: Tensor) -> Tensor:
        """Logits (batch, levels, height, width) of all pixels at once, from grey values (batch, 1, height, width)."""
        ...

    def laws(self, grey: Tensor, rows: int) -> Iterator[Tensor]:
        """Logits (batch, levels) of one pixel after the other, from row number `rows` on.

        Before each, it looks at `grey` again: the caller has meanwhile filled in what was drawn.
        """
        ...


def laws_by_passes(network: Callable[[Tensor], Tensor], grey: Tensor, rows: int) -> Iterator[Tensor]:
    """The laws of a network that keeps no state: a pass for every pixel, over the rows down to its own."""
    for row in range(rows, grey.shape[2]):
        for column in range(grey.shape[3]):
            yield network(grey[:, :, : row + 1])[:, :, row, column]  # what lies below cannot matter


class PixelModel(nn.Module):
    """A law over pictures of one channel whose n² pixels take `levels` values 0 … levels − 1 (book sec. 13.1).

        p(x) = Π_i p(x_i | x_1, …, x_{i−1}),   pixels row by row, each row from left to right

    Each factor is a softmax, so p sums to one and the likelihood is exact. In training one pass gives all factors at
    once; drawing takes a step for every pixel. Two levels make each factor a coin.
    """

    def __init__(self, network: nn.Module, shape: tuple[int, int], *, levels: int = 2) -> None:
        super().__init__()
        if levels < 2 or min(shape) < 1:
            raise ValueError(f"need at least two levels and one pixel; got levels={levels}, shape={shape}")
        if not isinstance(network, CausalNetwork):
            raise ValueError(f"the network must give its laws one by one; {type(network).__name__} has no `laws`")
        self.network: CausalNetwork = network
        self.shape = shape
        self.levels = levels

    def grey(self, x: Int[Tensor, "batch height width"]) -> Float[Tensor, "batch 1 height width"]:
        """Levels as grey values from −1 to 1."""
        return 2 * x[:, None].to(next(self.parameters()).dtype) / (self.levels - 1) - 1

    def forward(self, x: Int[Tensor, "batch height width"]) -> Float[Tensor, "batch levels height width"]:
        """Logits of every pixel's law given the pixels before it."""
        return self.network(self.grey(x))

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
        if not 0 <= rows <= x.shape[1]:
            raise ValueError(f"the rows kept must be from 0 to {x.shape[1]}; got rows={rows}")
        drawn = x.clone()
        drawn[:, rows:] = 0
        grey = self.grey(drawn)
        for index, logits in enumerate(self.network.laws(grey, rows)):
            row, column = rows + index // x.shape[2], index % x.shape[2]
            pixel = torch.multinomial((logits / temperature).softmax(1), 1)
            drawn[:, row, column] = pixel[:, 0]
            grey[:, :, row, column] = 2 * pixel.to(grey.dtype) / (self.levels - 1) - 1
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
