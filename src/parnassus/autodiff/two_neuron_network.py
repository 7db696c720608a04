"""A network of one input, two neurons and their sum (book sec. 2.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from parnassus.autodiff.activations_and_losses import sigmoid
from parnassus.autodiff.operations import Arithmetic

Node = TypeVar("Node", bound=Arithmetic)


@dataclass(frozen=True)
class TwoNeuronNetwork(Generic[Node]):
    """All nodes of one forward pass (book fig. 2.1).

    >>> nodes = two_neuron_network(Variable(1.0), Variable(0.5), Variable(-0.5))
    >>> nodes.names[nodes.z1]
    'z₁ = w₁x'
    """

    x: Node
    w1: Node
    w2: Node
    z1: Node
    z2: Node
    h1: Node
    h2: Node
    y: Node

    @property
    def names(self) -> dict[Node, str]:
        """The book's names of the nodes."""
        return {
            self.x: "x",
            self.w1: "w₁",
            self.w2: "w₂",
            self.z1: "z₁ = w₁x",
            self.z2: "z₂ = w₂x",
            self.h1: "h₁ = σ(z₁)",
            self.h2: "h₂ = σ(z₂)",
            self.y: "y = h₁ + h₂",
        }


def two_neuron_network(x: Node, w1: Node, w2: Node, sigma: Callable[[Node], Node] = sigmoid) -> TwoNeuronNetwork[Node]:
    """Forward pass on variables or symbols (book sec. 2.1).

    z_i = w_i x,   h_i = σ(z_i),   y = h₁ + h₂
    """
    z1, z2 = w1 * x, w2 * x
    h1, h2 = sigma(z1), sigma(z2)
    return TwoNeuronNetwork(x, w1, w2, z1, z2, h1, h2, h1 + h2)
