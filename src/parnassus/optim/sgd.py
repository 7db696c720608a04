"""Stochastic gradient descent as an optimiser of torch (book sec. 3.1)."""

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from parnassus.optim.groupwise import Group, GroupwiseOptimizer, with_l2


class SGD(GroupwiseOptimizer):
    """θ ← θ − η g, where g is the gradient of whatever batch went before (book eq. 3.2).

    There is no momentum in it that a scheduler could switch on: see `Momentum`.
    """

    single_pass = True

    def __init__(self, parameters: ParamsT, lr: float = 1e-3, *, weight_decay: float = 0.0) -> None:
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})

    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        torch._foreach_add_(theta, with_l2(gradient, theta, group["weight_decay"]), alpha=-group["lr"])
