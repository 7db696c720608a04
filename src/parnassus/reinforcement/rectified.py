"""Stacked networks of rectified layers whose whole gradient is one step of autograd (book sec. 18.3).

Where networks are small and updates many, the time is spent between the products; this leaves little but them.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.reinforcement.stacked import StackedLinear, StackedMLP


class RectifiedMLP(StackedMLP):
    """StackedMLP with σ = ReLU: the same parameters and numbers, faster; it can be differentiated once.

    Weights and biases begin uniform between ±1/√inputs, as nn.Linear's do: what is said at first is small.
    """

    def __init__(self, learners: int, sizes: Sequence[int]) -> None:
        super().__init__(learners, sizes, activation=torch.relu)
        for layer, inputs in zip(self.layers, sizes[:-1], strict=True):
            for parameter in layer.parameters():
                nn.init.uniform_(parameter, -1 / sqrt(inputs), 1 / sqrt(inputs))

    def forward(self, x: Float[Tensor, "learners batch inputs"]) -> Float[Tensor, "learners batch outputs"]:
        layers = [cast("StackedLinear", layer) for layer in self.layers]
        weights, biases = [layer.weight for layer in layers], [layer.bias for layer in layers]
        if not torch.is_grad_enabled():
            return _passed(x, weights, biases)[-1]
        return cast("Tensor", _Rectified.apply(x, *weights, *biases))  # type: ignore[no-untyped-call]


def _passed(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> list[Tensor]:
    """The input, what every hidden layer says of it, and the output."""
    seen = [x]
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        seen.append(torch.baddbmm(bias, seen[-1], weight).relu_())
    return [*seen, torch.baddbmm(biases[-1], seen[-1], weights[-1])]


class _Rectified(torch.autograd.Function):
    """∂L/∂W_k = h_{k−1}ᵀ g_k,  ∂L/∂b_k = Σ_rows g_k,  g_{k−1} = (g_k W_kᵀ) ⊙ [h_{k−1} > 0]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *parameters: Tensor) -> Tensor:
        depth = len(parameters) // 2
        *seen, y = _passed(x, parameters[:depth], parameters[depth:])
        ctx.save_for_backward(*seen, *parameters[:depth])
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        depth = len(ctx.saved_tensors) // 2
        seen, weights = ctx.saved_tensors[:depth], ctx.saved_tensors[depth:]
        of_weights, of_biases = [], []
        for layer in reversed(range(depth)):
            of_weights.append(torch.bmm(seen[layer].mT, slope))
            of_biases.append(slope.sum(1, keepdim=True))
            if layer:
                slope = torch.bmm(slope, weights[layer].mT).mul_(seen[layer] > 0)
        of_x = torch.bmm(slope, weights[0].mT) if ctx.needs_input_grad[0] else None
        return of_x, *reversed(of_weights), *reversed(of_biases)
