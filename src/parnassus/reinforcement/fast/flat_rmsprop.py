"""RMSprop on one flat parameter vector, for small networks (book sec. 3.3; Hinton's lecture of 2012)."""

from typing import Any

import torch
from torch import Tensor
from torch.optim import RMSprop
from torch.optim.optimizer import ParamsT

from parnassus.reinforcement.fast.flat_optimizer import FlatOptimizer


class FlatRMSprop(FlatOptimizer, RMSprop):
    """torch.optim.RMSprop, bit for bit, for one group of parameters that all have gradients.

    Parameters, gradients and mean squares are one vector each: five operations per step, for any number of layers.
    Before a step each learner's gradient is scaled down to `max_norm`, as by `clip_grad_norm_per_learner`. Step hooks
    are not called.
    """

    moments = ("square_avg",)

    def __init__(
        self,
        parameters: ParamsT,
        lr: float = 1e-2,
        *,
        alpha: float = 0.99,
        eps: float = 1e-8,
        max_norm: float = torch.inf,
        num_learners: int = 1,
    ) -> None:
        super().__init__(parameters, lr, alpha=alpha, eps=eps, foreach=True)
        self.flatten_parameters(max_norm, num_learners)

    def update(self, group: dict[str, Any], gradient: Tensor, count: Tensor, *moments: Tensor) -> None:
        """θ ← θ − η g ⊘ (√r + ε) after r ← α r + (1 − α) g ⊙ g (book eqs. 3.41-3.42)."""
        (square,) = moments
        count.add_(1)
        square.mul_(group["alpha"]).addcmul_(gradient, gradient, value=1 - group["alpha"])
        self._flat.vector.addcdiv_(gradient, square.sqrt().add_(group["eps"]), value=-group["lr"])
