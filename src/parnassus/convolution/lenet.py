"""LeNet: two convolutions that pool, then a few dense layers (LeCun et al. 1998)."""

from collections.abc import Sequence
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from parnassus.layers.activations import Activation, relu
from parnassus.layers.classifier import Classifier
from parnassus.layers.dense import Dense

KERNEL = 5
LEAST = 2 * (KERNEL + 1)  # halved by the first pooling, cut by the second kernel, halved again: one pixel must be left


class Convolve(nn.Module):
    """pool(σ(K ⋆ x + b)): filters slide over the picture, each giving a map of where it answers."""

    def __init__(self, convolution: nn.Conv2d, *, activation: Activation, pool: nn.Module) -> None:
        super().__init__()
        self.convolution = convolution
        self.activation = activation
        self.pool = pool

    def forward(self, x: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch outputs rows columns"]:
        pooled: Tensor = self.pool(self.activation(self.convolution(x)))
        return pooled


def lenet(
    shape: tuple[int, int, int],
    classes: int,
    *,
    channels: tuple[int, int] = (6, 16),
    hidden: Sequence[int] = (120, 84),
    activation: Activation = relu,
    pool: type[nn.MaxPool2d | nn.AvgPool2d] = nn.MaxPool2d,
    dropout: float = 0.0,
) -> Classifier:
    """A LeNet for pictures (channels, height, width): 5 × 5 filters, the first ones padded (LeCun et al. 1998).

    The defaults are LeNet-5's sizes, 61,706 numbers for 28 × 28 digits, with today's corner and pooling in place of
    its tanh and averages. `dropout` stands before every dense layer.
    """
    inputs, height, width = shape
    if min(height, width) < LEAST:
        raise ValueError(f"LeNet needs pictures of at least {LEAST} × {LEAST} pixels; got {height} × {width}")
    rows, columns = ((side // 2 - KERNEL + 1) // 2 for side in (height, width))
    sizes = (channels[1] * rows * columns, *hidden, classes)
    first = nn.Conv2d(inputs, channels[0], KERNEL, padding=KERNEL // 2)
    second = nn.Conv2d(channels[0], channels[1], KERNEL)
    dense: list[nn.Module] = []
    for fan_in, fan_out in pairwise(sizes):
        dense += [nn.Dropout(dropout)] if dropout else []
        dense.append(Dense(fan_in, fan_out, activation=activation))
    dense[-1] = Dense(sizes[-2], classes)
    return Classifier(
        nn.Sequential(
            Convolve(first, activation=activation, pool=pool(2)),
            Convolve(second, activation=activation, pool=pool(2)),
            nn.Flatten(),
            *dense,
        )
    )


def filters(model: Classifier) -> Float[Tensor, "filters channels height width"]:
    """The first convolution's filters: what the network looks for in the picture itself."""
    first = next(module for module in model.modules() if isinstance(module, nn.Conv2d))
    return first.weight.detach()
