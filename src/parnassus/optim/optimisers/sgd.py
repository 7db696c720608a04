"""Stochastic gradient descent (book sec. 3.1)."""

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from parnassus.optim.optimisers.foreach_optimizer import ForeachOptimizer, Group, add_l2


class SGD(ForeachOptimizer):
    """SGD without momentum: θ ← θ − η g, where g is the gradient of a mini-batch (book eq. 3.2).

    A scheduler that sets `momentum` has no effect on it; see `Momentum`.

    >>> theta = nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = SGD([theta], lr=0.1)
    >>> theta.square().sum().backward()
    >>> optimizer.step()
    >>> round(theta.item(), 4)
    0.8
    """

    is_single_pass = True

    def __init__(self, parameters: ParamsT, lr: float = 1e-3, *, weight_decay: float = 0.0) -> None:
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})

    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        torch._foreach_add_(theta, add_l2(gradient, theta, group["weight_decay"]), alpha=-group["lr"])
