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

    Weights are initialised orthogonal, scaled by `gain`, independently for each learner; biases are 0.
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
    """x ↦ W_n σ(… σ(W_1 x + b_1) …) + b_n for every learner; `gain` is that of the last layer."""

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


def clip_grad_norm_per_learner(
    parameters: Sequence[nn.Parameter], max_norm: float, *, num_learners: int
) -> Float[Tensor, " learners"]:
    """Scale each learner's gradient down to `max_norm` where it is larger; returns the norms before.

    Each stack holds one or several layers of every learner, layer by layer.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    norms = _norms(gradients, num_learners)
    if num_learners == 1 and norms.is_cpu:
        norm = float(norms)
        if norm > max_norm:
            torch._foreach_mul_(gradients, max_norm / (norm + 1e-6))
        return norms
    if norms.is_cpu and not bool((norms > max_norm).any()):
        return norms
    scale = (max_norm / (norms + 1e-6)).clamp_(max=1.0)[:, None]
    torch._foreach_mul_([_rows_by_learner(each, num_learners) for each in gradients], [scale] * len(gradients))
    return norms


def _norms(gradients: list[Tensor], num_learners: int) -> Float[Tensor, " learners"]:
    if num_learners == 1:
        parts: Tensor = gradients[0] if len(gradients) == 1 else torch.stack(torch._foreach_norm(gradients))
        norm: Tensor = torch.linalg.vector_norm(parts)
        return norm.view(1)
    rows = [layer for gradient in gradients for layer in _rows_by_learner(gradient, num_learners).unbind()]
    norms: Tensor = torch.linalg.vector_norm(torch.cat(rows, 1), dim=1)
    return norms


def _rows_by_learner(gradient: Tensor, num_learners: int) -> Float[Tensor, "layers learners numbers"]:
    return gradient.view(-1, num_learners, gradient[0].numel())
