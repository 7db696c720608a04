"""Dense layers and multilayer perceptrons: h_l = σ(W_lᵀ h_{l−1} + b_l), h_0 = x (book sec. 1.2)."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import sqrt
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.layers.activations import Activation, identity, relu

Initialiser: TypeAlias = Callable[[Tensor, Tensor], None]
"""An initialiser that fills a weight (inputs × outputs) and a bias (outputs) in place."""


def affine(
    x: Float[Tensor, "*batch inputs"], weight: Float[Tensor, "inputs outputs"], bias: Float[Tensor, " outputs"]
) -> Float[Tensor, "*batch outputs"]:
    """Affine map x W + b of each row x, equal to Wᵀx + b for x as a column (book sec. 1.2).

    The weight is inputs × outputs as in the book; `torch.nn.Linear` stores the transpose.
    """
    return x @ weight + bias


def fan_in_uniform(weight: Float[Tensor, "inputs outputs"], bias: Float[Tensor, " outputs"]) -> None:
    """Weights and bias uniform on ±1/√inputs, the default of `torch.nn.Linear`."""
    bound = 1 / sqrt(weight.shape[0])
    nn.init.uniform_(weight, -bound, bound)
    nn.init.uniform_(bias, -bound, bound)


class Dense(nn.Module):
    """One fully-connected layer h = σ(x W + b); with outputs = 1, a single neuron (book eq. 1.3).

    >>> layer = Dense(3, 2, activation=torch.relu)
    >>> layer(torch.ones(5, 3)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        activation: Activation = identity,
        initialise: Initialiser = fan_in_uniform,
    ) -> None:
        super().__init__()
        if inputs < 1 or outputs < 1:
            raise ValueError(f"inputs and outputs must be at least 1; got inputs={inputs}, outputs={outputs}")
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        self.activation = activation
        initialise(self.weight, self.bias)

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        if x.shape[-1] != len(self.weight):
            raise ValueError(f"x must have {len(self.weight)} features per example; got {x.shape[-1]}")
        return self.activation(affine(x, self.weight, self.bias))

    def extra_repr(self) -> str:
        inputs, outputs = self.weight.shape
        name = getattr(self.activation, "__name__", type(self.activation).__name__)
        return f"{inputs} → {outputs}, {name}"


def mlp(
    sizes: Sequence[int],
    *,
    activation: Activation = relu,
    output: Activation = identity,
    initialise: Initialiser = fan_in_uniform,
) -> nn.Sequential:
    """A multilayer perceptron with layers of the given sizes, input first (book sec. 1.2).

    Hidden layers apply `activation`, the last layer `output`. The book's definition applies σ in the last layer too,
    which is `output=activation`.
    """
    if len(sizes) < 2:
        raise ValueError(f"sizes must have at least two entries, input and output; got sizes={tuple(sizes)}")
    pairs = list(pairwise(sizes))
    activations = [activation] * (len(pairs) - 1) + [output]
    return nn.Sequential(
        *(
            Dense(inputs, outputs, activation=sigma, initialise=initialise)
            for (inputs, outputs), sigma in zip(pairs, activations, strict=True)
        )
    )


def merge_affine_layers(layers: Iterable[nn.Module]) -> Dense:
    """The single affine layer that equals a stack of affine layers.

        (x W₁ + b₁) W₂ + b₂ = x (W₁ W₂) + (b₁ W₂ + b₂)                                (Diehl sec. 1)

    Its rank is at most the smallest width in the stack. The last layer may have an activation, which is kept.
    """
    modules = list(layers)
    stack = [layer for layer in modules if isinstance(layer, Dense)]
    if not stack:
        raise ValueError("layers must contain at least one dense layer; got none")
    for index, layer in enumerate(modules):
        if not isinstance(layer, Dense) or (layer.activation is not identity and index + 1 < len(modules)):
            raise ValueError(f"layers before the last must be affine; layer {index} is {layer!r}")
    weight: Tensor = stack[0].weight
    bias: Tensor = stack[0].bias
    for layer in stack[1:]:
        weight, bias = weight @ layer.weight, affine(bias, layer.weight, layer.bias)
    merged = Dense(*weight.shape, activation=stack[-1].activation).to(weight)
    with torch.no_grad():
        merged.weight.copy_(weight)
        merged.bias.copy_(bias)
    return merged


def layer_outputs(network: nn.Sequential, x: Float[Tensor, "batch *example"]) -> list[Float[Tensor, "batch *units"]]:
    """h_1, …, h_L: the outputs of all layers, including the last (book sec. 1.2)."""
    outputs = [x]
    for layer in network:
        outputs.append(layer(outputs[-1]))
    return outputs[1:]


def count_parameters(module: nn.Module) -> int:
    """Number of trainable parameters (book ex. 1.1, Diehl sec. 1); Σ_l (n_{l−1} + 1) n_l for an `mlp`."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
