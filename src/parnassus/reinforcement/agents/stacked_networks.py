"""Networks of several learners with stacked weights, evaluated by one batched product per layer."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import sqrt
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

Layer: TypeAlias = tuple[nn.Parameter, nn.Parameter]
"""Weight and bias of a stacked layer."""


class StackedLinear(nn.Module):
    """y_l = x_l W_l + b_l for every learner l.

    Weights are initialised orthogonally, scaled by `gain`, independently for each learner; biases are 0.

    >>> StackedLinear(3, 4, 2)(torch.zeros(3, 5, 4)).shape
    torch.Size([3, 5, 2])
    """

    def __init__(self, num_learners: int, inputs: int, outputs: int, *, gain: float = sqrt(2)) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_learners, inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(num_learners, 1, outputs))
        for weight in self.weight:
            nn.init.orthogonal_(weight, gain)

    def forward(self, x: Float[Tensor, "learners batch inputs"]) -> Float[Tensor, "learners batch outputs"]:
        return torch.baddbmm(self.bias, x, self.weight)


class StackedMLP(nn.Module):
    """x ↦ W_n σ(… σ(W_1 x + b_1) …) + b_n for every learner; `gain` scales the last layer's weights.

    >>> StackedMLP(3, [4, 8, 2])(torch.zeros(3, 5, 4)).shape
    torch.Size([3, 5, 2])
    """

    def __init__(
        self,
        num_learners: int,
        sizes: Sequence[int],
        *,
        activation: Callable[[Tensor], Tensor] = torch.tanh,
        gain: float = 1.0,
    ) -> None:
        super().__init__()
        if len(sizes) < 2 or min(sizes) < 1 or num_learners < 1:
            raise ValueError(
                "a network needs at least an input size, an output size and one learner; "
                f"got sizes={list(sizes)}, num_learners={num_learners}"
            )
        self.activation = activation
        last = len(sizes) - 2
        self.layers = nn.ModuleList(
            StackedLinear(num_learners, *pair, gain=gain if layer == last else sqrt(2))
            for layer, pair in enumerate(pairwise(sizes))
        )

    def forward(self, x: Float[Tensor, "learners batch inputs"]) -> Float[Tensor, "learners batch outputs"]:
        *hidden, last = self.layers
        for layer in hidden:
            x = self.activation(layer(x))
        y: Tensor = last(x)
        return y
