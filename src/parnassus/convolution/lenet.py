"""LeNet: two convolutions with pooling, then dense layers (LeCun et al. 1998)."""

from collections.abc import Sequence
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from parnassus.layers.activations import Activation, relu
from parnassus.layers.classifier import Classifier
from parnassus.layers.dense import Dense

KERNEL = 5
MIN_SIZE = 2 * (KERNEL + 1)  # leaves one pixel after pooling, the second convolution, and pooling


class ConvBlock(nn.Module):
    """pool(σ(K ⋆ x + b)): convolution, activation and pooling.

    >>> block = ConvBlock(nn.Conv2d(1, 6, 5), activation=torch.relu, pool=nn.MaxPool2d(2))
    >>> block(torch.zeros(1, 1, 28, 28)).shape
    torch.Size([1, 6, 12, 12])
    """

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
    """A LeNet for images (channels, height, width): 5 × 5 filters, the first padded (LeCun et al. 1998).

    Default sizes are those of LeNet-5, 61,706 parameters for 28 × 28 digits, with ReLU and maximum pooling instead of
    tanh and averages. `dropout` is applied before every dense layer.
    """
    inputs, height, width = shape
    if min(height, width) < MIN_SIZE:
        raise ValueError(f"images must have at least {MIN_SIZE} × {MIN_SIZE} pixels; got {height} × {width}")
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
            ConvBlock(first, activation=activation, pool=pool(2)),
            ConvBlock(second, activation=activation, pool=pool(2)),
            nn.Flatten(),
            *dense,
        )
    )


def first_filters(model: Classifier) -> Float[Tensor, "first_filters channels height width"]:
    """The filters of the first convolution."""
    first = next(module for module in model.modules() if isinstance(module, nn.Conv2d))
    return first.weight.detach()
