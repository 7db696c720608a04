"""A dense network on NumPy arrays, differentiated by the tape and trained by plain gradient descent (book sec. 2.1)."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Protocol, cast, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from parnassus.autodiff.operation import Array, Term, Value
from parnassus.autodiff.operations import add, matmul
from parnassus.autodiff.tape import Variable, pull_back


@runtime_checkable
class Activation(Protocol):
    """A nonlinearity that takes arrays and anything traced alike."""

    def __call__(self, x: Term, /) -> Term: ...


class Network:
    """h_l = φ(h_{l−1} W_l + b_l), without φ on the last layer (book sec. 1.2). Rows are examples.

    `weights` are W₁, b₁, W₂, b₂, …; like torch's, they start uniform in ±1/√inputs.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        activation: Activation,
        source: np.random.Generator,
        *,
        dtype: type[np.floating] = np.float64,
    ) -> None:
        if len(sizes) < 2 or min(sizes) < 1:
            raise ValueError(f"a network needs two or more sizes, all positive; got sizes={tuple(sizes)}")
        self.activation = activation
        self.weights: list[Array] = []
        for inputs, outputs in pairwise(sizes):
            reach = 1 / np.sqrt(inputs)
            self.weights += [
                source.uniform(-reach, reach, shape).astype(dtype) for shape in ((inputs, outputs), (outputs,))
            ]

    def __call__(self, x: Float[np.ndarray, "batch inputs"]) -> Float[np.ndarray, "batch outputs"]:
        """Outputs for these inputs, with no record kept."""
        return dense_network(x, self.weights, self.activation)

    def descend(
        self, x: Float[np.ndarray, "batch inputs"], loss: Callable[[Variable], Variable], *, rate: float
    ) -> float:
        """One step θ ← θ − η ∇ℓ on the loss of the outputs; returns the loss before it (book eq. 1.13)."""
        if not rate > 0:
            raise ValueError(f"the learning rate must be positive; got rate={rate}")
        variables = [Variable(weight) for weight in self.weights]
        value = loss(dense_network(Variable(x), variables, self.activation))
        slopes = pull_back(value, variables)
        self.weights = [weight - rate * slope for weight, slope in zip(self.weights, slopes, strict=True)]
        return float(value.value)

    def state_dict(self) -> dict[str, object]:
        """The weights by their place, for a checkpoint."""
        return {str(place): torch.from_numpy(weight) for place, weight in enumerate(self.weights)}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Take weights of the same shapes."""
        loaded = [cast("torch.Tensor", state[str(place)]).numpy().copy() for place in range(len(state))]
        found, wanted = [each.shape for each in loaded], [each.shape for each in self.weights]
        if found != wanted:
            raise ValueError(f"the weights must have the shapes {wanted}; got {found}")
        self.weights = loaded


def dense_network(x: Term, weights: Sequence[Value], activation: Activation) -> Term:
    """The network as a formula, on arrays, variables or symbols (book sec. 1.2)."""
    h = x
    layers = len(weights) // 2
    for layer in range(layers):
        z = add(matmul(h, weights[2 * layer]), weights[2 * layer + 1])
        h = z if layer == layers - 1 else activation(z)
    return h


def torch_twin(network: Network, activation: nn.Module) -> nn.Sequential:
    """The same network in torch, from the same weights."""
    layers: list[nn.Module] = []
    for weight, bias in zip(network.weights[::2], network.weights[1::2], strict=True):
        inputs, outputs = weight.shape
        layer = nn.Linear(inputs, outputs, dtype=torch.from_numpy(weight).dtype)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(weight).T)
            layer.bias.copy_(torch.from_numpy(bias))
        layers += [layer, activation]
    return nn.Sequential(*layers[:-1])
