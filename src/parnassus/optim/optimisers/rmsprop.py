"""RMSProp: divide each step by a moving root mean square of the gradients (book sec. 3.3; Hinton 2012)."""

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from parnassus.optim.optimisers.foreach_optimizer import ForeachOptimizer, Group, add_l2, root_scaled_step


class RMSProp(ForeachOptimizer):
    """RMSProp with smoothing constant α (book eqs. 3.41-3.42, ex. 3.3).

        r ← α r + (1 − α) g ⊙ g,   r = 0 initially
        θ ← θ − η g ⊘ (√r + ε)

    The printed r averages AdaGrad's cumulative sum instead of g ⊙ g; its steps vanish as AdaGrad's do.

    >>> theta = nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = RMSProp([theta], lr=0.1)
    >>> theta.square().sum().backward()
    >>> optimizer.step()
    >>> round(theta.item(), 3)
    0.0
    """

    def __init__(
        self,
        parameters: ParamsT,
        lr: float = 1e-2,
        *,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay})

    def check_group(self, group: Group) -> None:
        super().check_group(group)
        if not 0 <= group["alpha"] < 1:
            raise ValueError(f"alpha must satisfy 0 ≤ alpha < 1; got alpha={group['alpha']}")

    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        gradient = add_l2(gradient, theta, group["weight_decay"])
        squares = self.state_tensors("squares", theta)
        torch._foreach_mul_(squares, group["alpha"])
        torch._foreach_addcmul_(squares, gradient, gradient, 1 - group["alpha"])
        root_scaled_step(group, theta, gradient, squares)
