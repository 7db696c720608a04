"""RMSProp: divide each step by a moving root mean square of the gradients (book sec. 3.3; Hinton 2012)."""

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from parnassus.optim.optimisers.foreach_optimizer import ForeachOptimizer, Group, add_l2


class RMSProp(ForeachOptimizer):
    """RMSProp with smoothing constant α (book eqs. 3.41-3.42, ex. 3.3).

        r ← α r + (1 − α) g ⊙ g,   r = 0 initially
        θ ← θ − η g ⊘ (√r + ε)

    The printed r averages AdaGrad's cumulative sum instead of g ⊙ g; its steps vanish as AdaGrad's do.
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

    def validate_group(self, group: Group) -> None:
        super().validate_group(group)
        if not 0 <= group["alpha"] < 1:
            raise ValueError(f"alpha must satisfy 0 ≤ alpha < 1; got alpha={group['alpha']}")

    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        gradient = add_l2(gradient, theta, group["weight_decay"])
        squares = self.state_tensors("squares", theta)
        torch._foreach_mul_(squares, group["alpha"])
        torch._foreach_addcmul_(squares, gradient, gradient, 1 - group["alpha"])
        root = torch._foreach_sqrt(squares)
        torch._foreach_add_(root, group["eps"])
        torch._foreach_addcdiv_(theta, gradient, root, -group["lr"])
