"""Stacked networks of rectified layers, with the gradient of a loss written out (book sec. 18.3).

Where networks are small and updates many, half the time is spent between the products; this leaves little but them.
"""

from collections.abc import Iterable, Sequence
from math import sqrt
from typing import NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.reinforcement.stacked import StackedLinear, StackedMLP, written

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
    def _by_layer(self) -> list[tuple[nn.Parameter, nn.Parameter]]:
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
        """The gradient of a loss L into every parameter's `grad`, from `slope`, ∂L/∂ what was said.

        ∂L/∂W_k = h_{k−1}ᵀ g_k,  ∂L/∂b_k = Σ_rows g_k,  g_{k−1} = (g_k W_kᵀ) ⊙ [h_{k−1} > 0]
        """
        shown, thin = list(trace.shown), True
        for weight, bias in reversed(self._by_layer):
            seen = shown.pop()
            if thin:
                written(weight).copy_(torch.bmm(slope.mT, seen).mT)  # (gᵀ h)ᵀ: the faster way where g has few columns
            else:
                torch.bmm(seen.mT, slope, out=written(weight))
            torch.sum(slope, 1, keepdim=True, out=written(bias))
            if shown:
                slope = torch.bmm(slope, weight.mT).mul_(seen.sign())  # h ≥ 0: its sign is [h > 0]
            thin = False
