"""Actor and critic in one pass, whose whole gradient is one step of autograd (book sec. 18.5).

Where networks are small and updates many, the time is spent between the products; this leaves little but them.
"""

from collections.abc import Sequence
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.stacked import StackedLinear


def both_heads(
    x: Float[Tensor, "learners batch features"],
    hidden: Sequence[StackedLinear],
    actor: StackedLinear,
    critic: StackedLinear,
) -> tuple[Float[Tensor, "learners batch actions"], Float[Tensor, "learners batch 1"]]:
    """h_k = tanh(h_{k−1} W_k + b_k) for the actors and, after them in the stacks, the critics; then the head of each.

    It can be differentiated once, with respect to the parameters; x is taken as given.
    """
    layers = [*hidden, actor, critic]
    weights, biases = [layer.weight for layer in layers], [layer.bias for layer in layers]
    if not torch.is_grad_enabled():
        *_, answer, value = _passed(x, weights, biases)
        return answer, value
    return cast("tuple[Tensor, Tensor]", _BothHeads.apply(x, *weights, *biases))  # type: ignore[no-untyped-call]


def _passed(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> list[Tensor]:
    """The input, twice; what every hidden layer says of it; then what the actors say, and the critics."""
    seen = [torch.cat([x, x])]
    for weight, bias in zip(weights[:-2], biases[:-2], strict=True):
        twice = torch.baddbmm(bias, seen[-1], weight).mul_(2)
        seen.append(twice.sigmoid_().mul_(2).sub_(1))  # tanh x = 2σ(2x) − 1: a third of the time of torch's tanh
    heads = zip(biases[-2:], seen[-1].chunk(2), weights[-2:], strict=True)
    return [*seen, *(torch.baddbmm(*head) for head in heads)]


class _BothHeads(torch.autograd.Function):
    """∂L/∂W_k = h_{k−1}ᵀ g_k,  ∂L/∂b_k = Σ_rows g_k,  g_{k−1} = (g_k W_kᵀ) ⊙ (1 − h_{k−1}²), from the heads back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *parameters: Tensor) -> tuple[Tensor, Tensor]:
        count = len(parameters) // 2
        *seen, answer, value = _passed(x, parameters[:count], parameters[count:])
        ctx.save_for_backward(*seen, *parameters[:count])
        return answer, value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, of_answer: Tensor, of_value: Tensor) -> tuple[Tensor | None, ...]:
        depth = (len(ctx.saved_tensors) - 1) // 2
        seen, weights = ctx.saved_tensors[:depth], ctx.saved_tensors[depth:]
        slopes, last = [of_answer, of_value], torch.empty_like(seen[-1])
        for slope, weight, part in zip(slopes, weights[-2:], last.chunk(2), strict=True):
            torch.bmm(slope, weight.mT, out=part)
        of_weights = [torch.bmm(h.mT, slope) for h, slope in zip(seen[-1].chunk(2), slopes, strict=True)]
        for layer in reversed(range(depth - 1)):
            last.mul_(seen[layer + 1].square().neg_().add_(1))
            slopes.insert(0, last)
            of_weights.insert(0, torch.bmm(seen[layer].mT, last))
            if layer:
                last = torch.bmm(last, weights[layer].mT)
        return None, *of_weights, *(slope.sum(1, keepdim=True) for slope in slopes)
