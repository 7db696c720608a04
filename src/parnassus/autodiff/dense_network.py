"""A dense network on NumPy arrays, differentiated by the tape and trained by gradient descent (book sec. 2.1)."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Protocol, cast, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from parnassus.autodiff.derivative_rules import Array, Term, Value
from parnassus.autodiff.operations import add, matmul
from parnassus.autodiff.tape import Variable, gradients
from parnassus.errors import check_positive


@runtime_checkable
class Activation(Protocol):
    """A nonlinearity on arrays and traced values."""

    def __call__(self, x: Term, /) -> Term: ...


class DenseNetwork:
    """h_l = φ(h_{l−1} W_l + b_l), without φ on the last layer (book sec. 1.2). Rows are examples.

    `weights` are W₁, b₁, W₂, b₂, …, initialised uniformly in ±1/√inputs as in torch.

    >>> import numpy as np
    >>> network = DenseNetwork((2, 8, 3), tanh, np.random.default_rng(0))
    >>> network(np.zeros((5, 2))).shape
    (5, 3)
    """

    def __init__(
        self,
        sizes: Sequence[int],
        activation: Activation,
        rng: np.random.Generator,
        *,
        dtype: type[np.floating] = np.float64,
    ) -> None:
        if len(sizes) < 2 or min(sizes) < 1:
            raise ValueError(f"sizes must be two or more positive integers; got sizes={tuple(sizes)}")
        self.activation = activation
        self.weights: list[Array] = []
        for inputs, outputs in pairwise(sizes):
            bound = 1 / np.sqrt(inputs)
            self.weights += [
                rng.uniform(-bound, bound, shape).astype(dtype) for shape in ((inputs, outputs), (outputs,))
            ]

    def __call__(self, x: Float[np.ndarray, "batch inputs"]) -> Float[np.ndarray, "batch outputs"]:
        """The outputs, without recording."""
        return dense_network(x, self.weights, self.activation)

    def gradient_step(
        self, x: Float[np.ndarray, "batch inputs"], loss: Callable[[Variable], Variable], *, learning_rate: float
    ) -> float:
        """One step θ ← θ − η ∇ℓ on the loss of the outputs; returns the loss before the step (book eq. 1.13)."""
        check_positive(learning_rate=learning_rate)
        variables = [Variable(weight) for weight in self.weights]
        value = loss(dense_network(Variable(x), variables, self.activation))
        steps = [learning_rate * gradient for gradient in gradients(value, variables)]
        self.weights = [weight - step for weight, step in zip(self.weights, steps, strict=True)]
        return float(value.value)

    def state_dict(self) -> dict[str, object]:
        """The weights by their index, for a checkpoint."""
        return {str(index): torch.from_numpy(weight) for index, weight in enumerate(self.weights)}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Load weights of the same shapes."""
        loaded = [cast("torch.Tensor", state[str(index)]).numpy().copy() for index in range(len(state))]
        shapes, expected = [each.shape for each in loaded], [each.shape for each in self.weights]
        if shapes != expected:
            raise ValueError(f"weights must have the shapes {expected}; got {shapes}")
        self.weights = loaded


def dense_network(x: Term, weights: Sequence[Value], activation: Activation) -> Term:
    """The network as a function of arrays, variables or symbols (book sec. 1.2)."""
    h = x
    layers = len(weights) // 2
    for layer in range(layers):
        z = add(matmul(h, weights[2 * layer]), weights[2 * layer + 1])
        h = z if layer == layers - 1 else activation(z)
    return h


def to_torch(network: DenseNetwork, activation: nn.Module) -> nn.Sequential:
    """The network in torch, with a copy of the weights."""
    layers: list[nn.Module] = []
    for weight, bias in zip(network.weights[::2], network.weights[1::2], strict=True):
        inputs, outputs = weight.shape
        layer = nn.Linear(inputs, outputs, dtype=torch.from_numpy(weight).dtype)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(weight).T)
            layer.bias.copy_(torch.from_numpy(bias))
        layers += [layer, activation]
    return nn.Sequential(*layers[:-1])
