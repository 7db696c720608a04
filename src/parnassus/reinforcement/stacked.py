"""Networks of several learners in one: their weights stacked, so that all are evaluated by one product a layer."""

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

    The weights begin orthogonal, times `gain`, each learner's drawn anew; the biases at 0.
    """

    def __init__(self, learners: int, inputs: int, outputs: int, *, gain: float = sqrt(2)) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(learners, inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(learners, 1, outputs))
        for weight in self.weight:
            nn.init.orthogonal_(weight, gain)

    def forward(self, x: Float[Tensor, "learners batch inputs"]) -> Float[Tensor, "learners batch outputs"]:
        return torch.baddbmm(self.bias, x, self.weight)


class StackedMLP(nn.Module):
    """x ↦ W_n σ(… σ(W_1 x + b_1) …) + b_n for every learner; `gain` is that of the last layer."""

    def __init__(
        self,
        learners: int,
        sizes: Sequence[int],
        *,
        activation: Callable[[Tensor], Tensor] = torch.tanh,
        gain: float = 1.0,
    ) -> None:
        super().__init__()
        if len(sizes) < 2 or min(sizes) < 1 or learners < 1:
            raise ValueError(f"a network needs an input and an output and learners; got {list(sizes)}, {learners}")
        self.activation = activation
        last = len(sizes) - 2
        self.layers = nn.ModuleList(
            StackedLinear(learners, *pair, gain=gain if layer == last else sqrt(2))
            for layer, pair in enumerate(pairwise(sizes))
        )

    def forward(self, x: Float[Tensor, "learners batch inputs"]) -> Float[Tensor, "learners batch outputs"]:
        *hidden, last = self.layers
        for layer in hidden:
            x = self.activation(layer(x))
        y: Tensor = last(x)
        return y


def written(parameter: nn.Parameter) -> Tensor:
    """Where a gradient is written: the same place every time."""
    if parameter.grad is None:
        parameter.grad = torch.empty_like(parameter)
    return parameter.grad


def write_slopes(
    layer: Layer, shown: Float[Tensor, "learners batch inputs"], slope: Float[Tensor, "learners batch outputs"]
) -> None:
    """∂L/∂W = hᵀ g and ∂L/∂b = Σ_rows g of a layer that was shown h, from g, ∂L/∂ what it said."""
    weight, bias = layer
    torch.bmm(shown.mT, slope, out=written(weight))
    torch.sum(slope, 1, keepdim=True, out=written(bias))


def pull_through(
    layers: Sequence[Layer],
    shown: Sequence[Float[Tensor, "learners batch _"]],
    slope: Float[Tensor, "learners batch outputs"],
    before: Callable[[Tensor, Tensor], Tensor],
) -> None:
    """The same for hidden layers, the last one first, from `slope`, ∂L/∂h of the last; it may be written over.

        g_k = before(∂L/∂h_k, h_k),   ∂L/∂h_{k−1} = g_k W_kᵀ

    `shown` are the input and all hidden answers, h_0 … h_n; `before` goes back through the activation.
    """
    for k in range(len(layers) - 1, -1, -1):
        slope = before(slope, shown[k + 1])
        write_slopes(layers[k], shown[k], slope)
        if k:
            slope = torch.bmm(slope, layers[k][0].mT)


def clip_each(parameters: Sequence[nn.Parameter], most: float, *, learners: int) -> Float[Tensor, " learners"]:
    """Shorten each learner's gradient to the norm `most` where it is longer; the norms as they were.

    Stacks hold one or several layers of each learner, layer by layer.
    """
    slopes = [p.grad for p in parameters if p.grad is not None]
    before = _norms(slopes, learners)
    if learners == 1 and before.is_cpu:
        norm = float(before)
        if norm > most:
            torch._foreach_mul_(slopes, most / (norm + 1e-6))
        return before
    if before.is_cpu and not bool((before > most).any()):
        return before
    share = (most / (before + 1e-6)).clamp_(max=1.0)[:, None]
    torch._foreach_mul_([_by_learner(slope, learners) for slope in slopes], [share] * len(slopes))
    return before


def _norms(slopes: list[Tensor], learners: int) -> Float[Tensor, " learners"]:
    if learners == 1:
        alone: Tensor = slopes[0] if len(slopes) == 1 else torch.stack(torch._foreach_norm(slopes))
        norm: Tensor = torch.linalg.vector_norm(alone)
        return norm.view(1)
    rows = [layer for slope in slopes for layer in _by_learner(slope, learners).unbind()]
    norms: Tensor = torch.linalg.vector_norm(torch.cat(rows, 1), dim=1)
    return norms


def _by_learner(slope: Tensor, learners: int) -> Float[Tensor, "layers learners numbers"]:
    return slope.view(-1, learners, slope[0].numel())
