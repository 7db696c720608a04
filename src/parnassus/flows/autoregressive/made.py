"""MADE: a masked network whose i-th output depends on the inputs before i only (Germain et al. 2015)."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from parnassus.errors import check_at_least_one
from parnassus.layers import Activation, Initialiser, affine, fan_in_uniform, identity, relu


def unit_degrees(features: int, hidden_sizes: Sequence[int]) -> list[Int[Tensor, " _axis"]]:
    """The degrees of all units: 1 … D for the inputs, 1 … D − 1 cyclically for the units of each hidden layer.

    A unit of degree d depends on inputs 1 … d, counted from 1 as in the book.
    """
    if features < 1 or not all(width >= 1 for width in hidden_sizes):
        raise ValueError(
            f"features and hidden_sizes must be at least 1; got features={features}, hidden_sizes={tuple(hidden_sizes)}"
        )
    inner = max(1, features - 1)
    return [torch.arange(1, features + 1), *(torch.arange(width) % inner + 1 for width in hidden_sizes)]


def autoregressive_masks(
    features: int, hidden_sizes: Sequence[int], outputs: int
) -> list[Bool[Tensor, "_axis _other"]]:
    """Masks (inputs × outputs) of all layers with which output i depends on inputs 1 … i − 1 only.

        hidden layers:   unit of degree d is connected to unit of degree d′   if   d ≤ d′
        last layer:      unit of degree d is connected to output i            if   d < i

    The last layer has `outputs` adjacent units for every feature.
    """
    degrees = unit_degrees(features, hidden_sizes)
    masks = [lower[:, None] <= upper for lower, upper in pairwise(degrees)]
    last = torch.arange(1, features + 1).repeat_interleave(outputs)
    return [*masks, degrees[-1][:, None] < last]


class MaskedDense(nn.Module):
    """A dense layer with masked weights, h = σ(x (M ⊙ W) + b).

    >>> MaskedDense(torch.tensor([[True], [False]]))(torch.zeros(5, 2)).shape
    torch.Size([5, 1])
    """

    mask: Tensor

    def __init__(
        self,
        mask: Bool[Tensor, "inputs outputs"],
        *,
        activation: Activation = identity,
        initialise: Initialiser = fan_in_uniform,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(mask.shape))
        self.bias = nn.Parameter(torch.empty(mask.shape[1]))
        self.activation = activation
        self.register_buffer("mask", mask)
        initialise(self.weight, self.bias)

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        return self.activation(affine(x, self.weight * self.mask, self.bias))


class MADE(nn.Module):
    """All conditioners h_i = c_i(z_{1:i−1}) of an autoregressive flow as one masked network (book sec. 13.1).

    Maps (batch, features) to (batch, features, outputs). The outputs of the first feature are constants.

    >>> MADE(features=3, outputs=2)(torch.zeros(5, 3)).shape
    torch.Size([5, 3, 2])
    """

    def __init__(
        self, features: int, outputs: int, *, hidden_sizes: Sequence[int] = (64, 64), activation: Activation = relu
    ) -> None:
        super().__init__()
        check_at_least_one(outputs=outputs)
        masks = autoregressive_masks(features, hidden_sizes, outputs)
        activations = [activation] * len(hidden_sizes) + [identity]
        self.layers = nn.Sequential(
            *(MaskedDense(mask, activation=each) for mask, each in zip(masks, activations, strict=True))
        )
        self.features, self.outputs = features, outputs

    def forward(self, z: Float[Tensor, "batch {self.features}"]) -> Float[Tensor, "batch {self.features} outputs"]:
        h: Tensor = self.layers(z)
        return h.reshape(len(z), self.features, self.outputs)
