"""Stacked networks of rectified layers, with the gradient of a loss written out (book sec. 18.3).

Where networks are small and updates many, half the time is spent between the products; this leaves little but them.
"""

from collections.abc import Iterable, Sequence
from math import sqrt
from typing import NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.reinforcement.stacked import Layer, StackedLinear, StackedMLP, pull_through, written

FEW = 16
"""Rows from which on the last layer's weights, of few columns, are worth laying along these: half the time of reading
them across."""


class Trace(NamedTuple):
    """What a network said, and what each of its layers was shown: the input, then the hidden layers' answers."""

    said: Float[Tensor, "learners batch outputs"]
    shown: list[Float[Tensor, "learners batch inputs"]]


class RectifiedMLP(StackedMLP):
    """StackedMLP with σ = ReLU, and besides autograd's way a faster one: `traced`, then `pull_back`.

    Weights and biases begin uniform between ±1/√inputs, as nn.Linear's do: what is said at first is small.
    """

    def __init__(self, learners: int, sizes: Sequence[int]) -> None:
        super().__init__(learners, sizes, activation=torch.relu)
        for layer, inputs in zip(self.layers, sizes[:-1], strict=True):
            for parameter in layer.parameters():
                nn.init.uniform_(parameter, -1 / sqrt(inputs), 1 / sqrt(inputs))
        self._at_hand = tuple(cast("Iterable[StackedLinear]", self.layers))

    @property
    def _by_layer(self) -> list[Layer]:
        return [(layer.weight, layer.bias) for layer in self._at_hand]

    def forward(self, x: Float[Tensor, "learners batch inputs"]) -> Float[Tensor, "learners batch outputs"]:
        return self.traced(x).said

    def traced(self, x: Float[Tensor, "learners batch inputs"]) -> Trace:
        """h_0 = x, h_k = max(0, h_{k−1} W_k + b_k), and what the last layer says."""
        *hidden, (weight, bias) = self._by_layer
        shown = [x]
        for inner, offset in hidden:
            shown.append(torch.baddbmm(offset, shown[-1], inner).relu_())
        thin = weight.mT.contiguous().mT if x.shape[1] > FEW else weight  # of few columns: see there
        return Trace(torch.baddbmm(bias, shown[-1], thin), shown)

    @torch.no_grad()
    def pull_back(self, trace: Trace, slope: Float[Tensor, "learners batch outputs"]) -> None:
        """The gradient of a loss L into every parameter's `grad`, from `slope`, ∂L/∂ what was said."""
        *hidden, (weight, bias) = self._by_layer
        written(weight).copy_(torch.bmm(slope.mT, trace.shown[-1]).mT)  # (gᵀ h)ᵀ: faster where g has few columns
        torch.sum(slope, 1, keepdim=True, out=written(bias))
        if hidden:
            pull_through(hidden, trace.shown, torch.bmm(slope, weight.mT), _before_relu)


def _before_relu(slope: Tensor, said: Tensor) -> Tensor:
    """∂L/∂z from ∂L/∂h, where h = max(0, z): times [h > 0], the sign of h, which is never below 0."""
    return slope.mul_(said.sign())
