"""The measures of a fully connected network: depth, width, number of parameters, units that are dead (Diehl sec. 1)."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from parnassus.layers.dense import Dense, layer_outputs, parameter_count


@dataclass(frozen=True)
class Anatomy:
    """What a multilayer perceptron Dense_n ∘ … ∘ Dense_1 is made of (Diehl sec. 1).

    The notes call both n and n − 1 the depth. Here `depth` is n, the number of layers that have weights, and
    `hidden` is n − 1, the number of hidden layers; theorems about regions and approximation count the hidden ones.
    """

    sizes: tuple[int, ...]
    parameters: int

    @property
    def depth(self) -> int:
        """The number n of layers that have weights, the output layer among them."""
        return len(self.sizes) - 1

    @property
    def hidden(self) -> int:
        """The number n − 1 of layers whose values are neither input nor output."""
        return self.depth - 1

    @property
    def width(self) -> int:
        """The most outputs that a layer has; the input is no layer."""
        return max(self.sizes[1:])


def anatomy(network: nn.Module) -> Anatomy:
    """The sizes of a network's dense layers, input first, and how many parameters it has (Diehl sec. 1)."""
    shapes = [shape for module in network.modules() if (shape := _shape(module)) is not None]
    if not shapes:
        raise ValueError(f"a network without dense layers has no anatomy; got {network!r}")
    for index, ((_, outputs), (inputs, _)) in enumerate(pairwise(shapes), 1):
        if outputs != inputs:
            raise ValueError(f"layers must follow one another; layer {index} gives {outputs}, the next takes {inputs}")
    return Anatomy((shapes[0][0], *(outputs for _, outputs in shapes)), parameter_count(network))


@torch.no_grad()
def dead_units(network: nn.Sequential, x: Float[Tensor, "count *example"]) -> list[Bool[Tensor, " units"]]:
    """Of every dense layer but the last, which units give exactly 0 on all of x (Diehl sec. 1).

    A ReLU unit that is dead on all training data has gradient 0, and only a change in the layers before can wake it.
    """
    if len(x) == 0:
        raise ValueError("units are dead on examples; got none")
    pairs = zip(network, layer_outputs(network, x), strict=True)
    values = [output for layer, output in pairs if _shape(layer) is not None]
    return [(output == 0).flatten(0, -2).all(0) for output in values[:-1]]


def _shape(module: nn.Module) -> tuple[int, int] | None:
    """(inputs, outputs) of a layer that has weights; None of anything else."""
    match module:
        case Dense():
            inputs, outputs = module.weight.shape
            return inputs, outputs
        case nn.Linear():
            return module.in_features, module.out_features
    return None
