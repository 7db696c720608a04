"""Depth, width, parameter count and dead units of fully connected networks (Diehl sec. 1)."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from parnassus.layers.dense import Dense, count_parameters, layer_outputs


@dataclass(frozen=True)
class Architecture:
    """Layer sizes and parameter count of a multilayer perceptron Dense_n ∘ … ∘ Dense_1 (Diehl sec. 1).

    The notes call both n and n − 1 the depth. Here `depth` is n, the number of layers with weights, and `hidden_layers`
    is n − 1; theorems about linear regions and approximation count hidden layers.

    >>> Architecture((784, 128, 10), 101770).width
    128
    """

    sizes: tuple[int, ...]
    parameters: int

    @property
    def depth(self) -> int:
        """The number n of layers with weights, including the output layer."""
        return len(self.sizes) - 1

    @property
    def hidden_layers(self) -> int:
        """The number n − 1 of hidden layers."""
        return self.depth - 1

    @property
    def width(self) -> int:
        """The largest output size of a layer, without the input."""
        return max(self.sizes[1:])


def architecture(network: nn.Module) -> Architecture:
    """The sizes of a network's dense layers, input first, and its number of parameters (Diehl sec. 1)."""
    shapes = [shape for module in network.modules() if (shape := _shape(module)) is not None]
    if not shapes:
        raise ValueError(f"network must have dense layers; got {network!r}")
    for index, ((_, outputs), (inputs, _)) in enumerate(pairwise(shapes), 1):
        if outputs != inputs:
            raise ValueError(
                f"sizes of consecutive layers must agree; layer {index} has {outputs} outputs, the next {inputs} inputs"
            )
    return Architecture((shapes[0][0], *(outputs for _, outputs in shapes)), count_parameters(network))


@torch.no_grad()
def dead_units(network: nn.Sequential, x: Float[Tensor, "count *example"]) -> list[Bool[Tensor, " units"]]:
    """For each hidden dense layer, which units output exactly 0 on all of x (Diehl sec. 1).

    A ReLU unit that is dead on all training data has gradient 0; only changes of earlier layers can reactivate it.
    """
    if len(x) == 0:
        raise ValueError("dead units need at least one example; got none")
    pairs = zip(network, layer_outputs(network, x), strict=True)
    values = [output for layer, output in pairs if _shape(layer) is not None]
    return [(output == 0).flatten(0, -2).all(0) for output in values[:-1]]


def _shape(module: nn.Module) -> tuple[int, int] | None:
    """(inputs, outputs) of a dense layer, else None."""
    match module:
        case Dense():
            inputs, outputs = module.weight.shape
            return inputs, outputs
        case nn.Linear():
            return module.in_features, module.out_features
    return None
