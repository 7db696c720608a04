"""A network whose i-th output sees only the inputs before i, by masks on its weights (Germain et al. 2015)."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from parnassus.layers import Activation, Initialiser, affine, identity, relu, uniform_by_fan_in


def degrees(features: int, hidden: Sequence[int]) -> list[Int[Tensor, " _axis"]]:
    """How many inputs each unit may depend on at most: 1 … D for the inputs, 1 … D − 1 in turn for hidden units.

    A unit of degree d sees inputs 1 … d, counted from 1 as in the book.
    """
    if features < 1 or not all(width >= 1 for width in hidden):
        raise ValueError(
            f"a masked network needs at least one feature and layers of at least one unit; "
            f"got features={features}, hidden={tuple(hidden)}"
        )
    inner = max(1, features - 1)
    return [torch.arange(1, features + 1), *(torch.arange(width) % inner + 1 for width in hidden)]


def autoregressive_masks(features: int, hidden: Sequence[int], outputs: int) -> list[Bool[Tensor, "_axis _other"]]:
    """Which weights (inputs × outputs) of each layer stay, so that output i sees inputs 1 … i − 1 only.

        hidden layers:   unit of degree d′ hears unit of degree d   if   d ≤ d′
        last layer:      output i          hears unit of degree d   if   d < i

    The last layer has `outputs` numbers for every feature, those of one feature side by side.
    """
    ranks = degrees(features, hidden)
    masks = [before[:, None] <= after for before, after in pairwise(ranks)]
    last = torch.arange(1, features + 1).repeat_interleave(outputs)
    return [*masks, ranks[-1][:, None] < last]


class MaskedDense(nn.Module):
    """h = σ(x (M ⊙ W) + b): a dense layer some of whose weights are held at zero."""

    mask: Tensor

    def __init__(
        self,
        mask: Bool[Tensor, "inputs outputs"],
        *,
        activation: Activation = identity,
        initialise: Initialiser = uniform_by_fan_in,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(mask.shape))
        self.bias = nn.Parameter(torch.empty(mask.shape[1]))
        self.activation = activation
        self.register_buffer("mask", mask)
        initialise(self.weight, self.bias)

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        return self.activation(affine(x, self.weight * self.mask, self.bias))


class MaskedNetwork(nn.Module):
    """All conditioners h_i = c_i(z_{1:i−1}) of an autoregressive flow in one network and one pass (book sec. 13.1).

    It gives `outputs` numbers for each of the features: (batch, features) → (batch, features, outputs). Those of the
    first feature are a bias alone, for there is nothing before it.
    """

    def __init__(
        self, features: int, outputs: int, *, hidden: Sequence[int] = (64, 64), activation: Activation = relu
    ) -> None:
        super().__init__()
        if outputs < 1:
            raise ValueError(f"a masked network needs at least one output a feature; got outputs={outputs}")
        masks = autoregressive_masks(features, hidden, outputs)
        sigmas = [activation] * len(hidden) + [identity]
        self.layers = nn.Sequential(
            *(MaskedDense(mask, activation=sigma) for mask, sigma in zip(masks, sigmas, strict=True))
        )
        self.features, self.outputs = features, outputs

    def forward(self, z: Float[Tensor, "batch {self.features}"]) -> Float[Tensor, "batch {self.features} outputs"]:
        h: Tensor = self.layers(z)
        return h.reshape(len(z), self.features, self.outputs)
