"""Fast full-batch training of a small MLP with Adam, with backpropagation written out on one vector θ (Zhao sec. 5).

The weights are views of θ and their gradients views of a second vector, so a step of Adam takes a few vectorised
operations. For very small networks this is several times faster than autograd.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.errors import check_positive
from parnassus.layers.activations import Activation
from parnassus.layers.dense import mlp
from parnassus.layers.parameter_vector import flatten_parameters
from parnassus.losses.classification import one_hot, softmax

PenaltyGradient: TypeAlias = Callable[[Tensor], Tensor]
"""The gradient of a regulariser at weights of any shape."""


@dataclass(frozen=True)
class MLPSnapshots:
    """MLPs of one architecture, one per training checkpoint; row k of `theta` holds the parameters of the k-th.

    Hidden layers apply `activation`, with derivative `activation_derivative`; the output layer returns logits.
    """

    sizes: tuple[int, ...]
    activation: Activation
    activation_derivative: Activation
    theta: Float[Tensor, "checkpoints parameters"]

    @classmethod
    def initialise(
        cls, sizes: Sequence[int], activation: Activation, activation_derivative: Activation
    ) -> "MLPSnapshots":
        """One network with the random initialisation of `mlp`."""
        theta = flatten_parameters(mlp(sizes, activation=activation))[None]
        return cls(tuple(sizes), activation, activation_derivative, theta)

    def layer_outputs(self, x: Float[Tensor, "count inputs"]) -> list[Float[Tensor, "checkpoints count units"]]:
        """The outputs of every layer at every checkpoint: activations of the hidden layers, then logits."""
        layers = _layers(self.theta, self.sizes)
        outputs: list[Tensor] = []
        h = x.expand(len(self.theta), *x.shape)
        for index, (weight, bias) in enumerate(layers, 1):
            z = torch.baddbmm(bias[:, None], h, weight)
            h = z if index == len(layers) else self.activation(z)
            outputs.append(h)
        return outputs


def train_adam(
    start: MLPSnapshots,
    x: Float[Tensor, "count inputs"],
    y: Int[Tensor, " count"],
    *,
    learning_rate: float,
    checkpoints: Sequence[int],
    penalty: PenaltyGradient = torch.zeros_like,
) -> MLPSnapshots:
    """Minimise the cross-entropy with full-batch Adam; returns the networks after the given numbers of steps.

        ∂J/∂W_l = h_{l−1}ᵀ δ_l + penalty(W_l),  δ_L = (softmax(z_L) − y) / n,  δ_{l−1} = (δ_l W_lᵀ) ⊙ σ′(z_{l−1})

    (Zhao sec. 5.) Biases are not penalised.
    """
    check_positive(learning_rate=learning_rate)
    if not checkpoints or list(checkpoints) != sorted(set(checkpoints)) or checkpoints[0] < 0:
        raise ValueError(f"checkpoints must be increasing step numbers; got checkpoints={tuple(checkpoints)}")
    theta, targets = start.theta[-1].clone(), one_hot(y, start.sizes[-1]).to(x)
    gradient, mean, square = (torch.zeros_like(theta) for _ in range(3))
    layers, gradients = ([(w[0], b[0]) for w, b in _layers(each[None], start.sizes)] for each in (theta, gradient))
    snapshots = []
    for step in range(checkpoints[-1] + 1):
        if step in checkpoints:
            snapshots.append(theta.clone())
        _backpropagate(start, layers, gradients, x, targets)
        for (weight, _), (weight_gradient, _) in zip(layers, gradients, strict=True):
            weight_gradient.add_(penalty(weight))
        mean.lerp_(gradient, 0.1)
        square.lerp_(gradient.square(), 0.001)
        scale = (square / (1 - 0.999 ** (step + 1))).sqrt_().add_(1e-8)
        theta.addcdiv_(mean, scale, value=-learning_rate / (1 - 0.9 ** (step + 1)))
    return replace(start, theta=torch.stack(snapshots))


def _backpropagate(
    network: MLPSnapshots,
    layers: list[tuple[Tensor, Tensor]],
    gradients: list[tuple[Tensor, Tensor]],
    x: Tensor,
    targets: Tensor,
) -> None:
    """Write the gradient of the mean cross-entropy into `gradients`."""
    pre_activations, inputs = [], [x]
    for weight, bias in layers:
        pre_activations.append(torch.addmm(bias, inputs[-1], weight))
        inputs.append(network.activation(pre_activations[-1]))
    delta = (softmax(pre_activations[-1]) - targets) / len(x)
    for index in reversed(range(len(layers))):
        weight_gradient, bias_gradient = gradients[index]
        torch.mm(inputs[index].T, delta, out=weight_gradient)
        torch.sum(delta, 0, out=bias_gradient)
        if index:
            delta = (delta @ layers[index][0].T) * network.activation_derivative(pre_activations[index - 1])


def _layers(theta: Tensor, sizes: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
    """(weight, bias) of every layer, as views of the rows of θ, in the order of `flatten_parameters`."""
    cuts = [size for inputs, outputs in pairwise(sizes) for size in (inputs * outputs, outputs)]
    parts = theta.split(cuts, dim=1)
    return [
        (parts[2 * layer].view(len(theta), inputs, outputs), parts[2 * layer + 1])
        for layer, (inputs, outputs) in enumerate(pairwise(sizes))
    ]
