"""The smallest network with a fork: one input, two neurons, their sum (book sec. 2.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from parnassus.autodiff.functions import sigmoid
from parnassus.autodiff.operations import Arithmetic

Node = TypeVar("Node", bound=Arithmetic)


@dataclass(frozen=True)
class TwoNeurons(Generic[Node]):
    """Every node of the network, as the forward pass keeps them (book fig. 2.1)."""

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
        """The names that the book gives to the nodes."""
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


def two_neurons(x: Node, w1: Node, w2: Node, sigma: Callable[[Node], Node] = sigmoid) -> TwoNeurons[Node]:
    """Run the network forwards, on variables or on symbols (book sec. 2.1).

    z_i = w_i x,   h_i = σ(z_i),   y = h₁ + h₂
    """
    z1, z2 = w1 * x, w2 * x
    h1, h2 = sigma(z1), sigma(z2)
    return TwoNeurons(x, w1, w2, z1, z2, h1, h2, h1 + h2)
