"""Hand-written backward pass of stacked linear layers."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.reinforcement.agents.stacked_networks import Layer


def gradient_buffer(parameter: nn.Parameter) -> Tensor:
    """The tensor in which the parameter's gradient is written, allocated once."""
    if parameter.grad is None:
        parameter.grad = torch.empty_like(parameter)
    return parameter.grad


def write_layer_gradients(
    layer: Layer, inputs: Float[Tensor, "learners batch inputs"], gradient: Float[Tensor, "learners batch outputs"]
) -> None:
    """∂L/∂W = hᵀ g and ∂L/∂b = Σ_rows g of a layer with input h, given g = ∂L/∂ output."""
    weight, bias = layer
    torch.bmm(inputs.mT, gradient, out=gradient_buffer(weight))
    torch.sum(gradient, 1, keepdim=True, out=gradient_buffer(bias))


def backward_through_layers(
    layers: Sequence[Layer],
    layer_inputs: Sequence[Float[Tensor, "learners batch _"]],
    gradient: Float[Tensor, "learners batch outputs"],
    activation_backward: Callable[[Tensor, Tensor], Tensor],
) -> None:
    """Write the gradients of all hidden layers, given ∂L/∂h of the last, which may be overwritten.

        g_k = activation_backward(∂L/∂h_k, h_k),   ∂L/∂h_{k−1} = g_k W_kᵀ

    `layer_inputs` are the network's input and all hidden activations, h_0 … h_n.
    """
    for k in range(len(layers) - 1, -1, -1):
        gradient = activation_backward(gradient, layer_inputs[k + 1])
        write_layer_gradients(layers[k], layer_inputs[k], gradient)
        if k:
            gradient = torch.bmm(gradient, layers[k][0].mT)
