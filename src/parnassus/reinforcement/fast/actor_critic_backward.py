"""Forward and hand-written backward pass of actor and critic together (book sec. 18.5).

For small networks most of the time is overhead between the matrix products, most of which is avoided here.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.agents.stacked_networks import Layer
from parnassus.reinforcement.fast.stacked_backward import backward_through_layers, write_layer_gradients


class ActorCriticActivations(NamedTuple):
    """Outputs of actors and critics, and the input of every layer; that of the first one twice."""

    outputs: Float[Tensor, "learners batch actions"]
    values: Float[Tensor, "learners batch 1"]
    layer_inputs: list[Float[Tensor, "both batch inputs"]]


def forward_with_activations(
    x: Float[Tensor, "learners batch features"], layers: Sequence[Layer]
) -> ActorCriticActivations:
    """h_k = tanh(h_{k−1} W_k + b_k) for actors and critics, stacked in this order, then both heads.

    The heads are the last two layers, the actors' before the critics'.
    """
    *hidden, (actor_weight, actor_bias), (critic_weight, critic_bias) = layers
    layer_inputs = [torch.cat([x, x])]
    for weight, bias in hidden:
        twice = torch.baddbmm(bias, layer_inputs[-1], weight).mul_(2)
        layer_inputs.append(
            twice.sigmoid_().mul_(2).sub_(1)
        )  # tanh x = 2σ(2x) − 1: a third of the time of torch's tanh
    actors, critics = layer_inputs[-1].chunk(2)
    outputs = torch.baddbmm(actor_bias, actors, actor_weight)
    return ActorCriticActivations(outputs, torch.baddbmm(critic_bias, critics, critic_weight), layer_inputs)


@torch.no_grad()
def write_gradients(
    activations: ActorCriticActivations,
    layers: Sequence[Layer],
    grad_outputs: Float[Tensor, "learners some actions"],
    grad_values: Float[Tensor, "learners some 1"],
) -> None:
    """Write every parameter's `grad`, given ∂L/∂outputs and ∂L/∂values of the first rows."""
    rows = grad_values.shape[1]
    layer_inputs = [own if own.shape[1] == rows else own[:, :rows] for own in activations.layer_inputs]
    gradient = torch.empty_like(layer_inputs[-1])
    heads = zip(layers[-2:], (grad_outputs, grad_values), layer_inputs[-1].chunk(2), gradient.chunk(2), strict=True)
    for head, own, inputs, part in heads:
        write_layer_gradients(head, inputs, own)
        torch.bmm(own, head[0].mT, out=part)
    backward_through_layers(layers[:-2], layer_inputs, gradient, _tanh_backward)


def _tanh_backward(gradient: Tensor, activation: Tensor) -> Tensor:
    """∂L/∂z from ∂L/∂h, where h = tanh z: times 1 − h²."""
    return gradient.addcmul_(gradient * activation, activation, value=-1)
