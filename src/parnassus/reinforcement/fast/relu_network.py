"""Stacked ReLU networks with a hand-written backward pass (book sec. 18.3).

For small networks half of the time is overhead between the matrix products, most of which is avoided here.
"""

from collections.abc import Iterable, Sequence
from math import sqrt
from typing import NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.reinforcement.agents.stacked_networks import Layer, StackedLinear, StackedMLP
from parnassus.reinforcement.fast.stacked_backward import backward_through_layers, gradient_buffer

COLUMN_MAJOR_FROM = 16
"""Number of rows from which storing the last layer's narrow weight by columns halves the time to read it."""


class MLPActivations(NamedTuple):
    """A network's output, and the input of each of its layers."""

    outputs: Float[Tensor, "learners batch outputs"]
    layer_inputs: list[Float[Tensor, "learners batch inputs"]]


class ReLUMLP(StackedMLP):
    """StackedMLP with σ = ReLU, with a fast backward pass in addition to autograd's.

    For the fast pass call `forward_with_activations`, then `write_gradients`. Weights and biases are initialised
    uniformly in ±1/√inputs, as in nn.Linear, so that initial outputs are small.

    >>> ReLUMLP(3, [4, 8, 2])(torch.zeros(3, 5, 4)).shape
    torch.Size([3, 5, 2])
    """

    def __init__(self, num_learners: int, sizes: Sequence[int]) -> None:
        super().__init__(num_learners, sizes, activation=torch.relu)
        for layer, inputs in zip(self.layers, sizes[:-1], strict=True):
            for parameter in layer.parameters():
                nn.init.uniform_(parameter, -1 / sqrt(inputs), 1 / sqrt(inputs))
        self._layers = tuple(cast("Iterable[StackedLinear]", self.layers))

    @property
    def _parameters_by_layer(self) -> list[Layer]:
        return [(layer.weight, layer.bias) for layer in self._layers]

    def forward(self, x: Float[Tensor, "learners batch inputs"]) -> Float[Tensor, "learners batch outputs"]:
        return self.forward_with_activations(x).outputs

    def forward_with_activations(self, x: Float[Tensor, "learners batch inputs"]) -> MLPActivations:
        """h_0 = x, h_k = max(0, h_{k−1} W_k + b_k), and the output of the last layer."""
        *hidden, (weight, bias) = self._parameters_by_layer
        layer_inputs = [x]
        for inner, offset in hidden:
            layer_inputs.append(torch.baddbmm(offset, layer_inputs[-1], inner).relu_())
        last = weight.mT.contiguous().mT if x.shape[1] > COLUMN_MAJOR_FROM else weight
        return MLPActivations(torch.baddbmm(bias, layer_inputs[-1], last), layer_inputs)

    @torch.no_grad()
    def write_gradients(
        self, activations: MLPActivations, grad_outputs: Float[Tensor, "learners batch outputs"]
    ) -> None:
        """Write every parameter's `grad`, given ∂L/∂outputs."""
        *hidden, (weight, bias) = self._parameters_by_layer
        # (gᵀ h)ᵀ: faster than hᵀ g where g has few columns
        gradient_buffer(weight).copy_(torch.bmm(grad_outputs.mT, activations.layer_inputs[-1]).mT)
        torch.sum(grad_outputs, 1, keepdim=True, out=gradient_buffer(bias))
        if hidden:
            gradient = torch.bmm(grad_outputs, weight.mT)
            backward_through_layers(hidden, activations.layer_inputs, gradient, _relu_backward)


def _relu_backward(gradient: Tensor, activation: Tensor) -> Tensor:
    """∂L/∂z from ∂L/∂h, where h = max(0, z): times [h > 0], the sign of h, which is never negative."""
    return gradient.mul_(activation.sign())
