"""Adam on one flat parameter vector, for small networks (Kingma and Ba 2015)."""

from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import Adam, adam
from torch.optim.optimizer import ParamsT

from parnassus.reinforcement.fast.flat_optimizer import FlatOptimizer

TINY, TINY_EVERY = 1e-34, 64
"""Moments smaller than TINY are set to 0 every TINY_EVERY steps. Those of dead units decay by β per step until they
are denormal and slow: with 40 % of 67,000 denormal moments a step took 58 µs, without them 31. The weights do not
change, since ε is much larger."""


class FlatAdam(FlatOptimizer, Adam):
    """torch.optim.Adam(fused=True) for one group of parameters that all have gradients.

    Results differ from torch's by at most one bit: the remainder of a parameter's last cache line is rounded
    differently there. Collecting the state at every step takes longer than the step of some ten thousand weights; here
    parameters, gradients and state are one vector each. Before a step each learner's gradient is scaled down to
    `max_norm`, as by `clip_grad_norm_per_learner`. Step hooks are not called.

    >>> theta = nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = FlatAdam([theta], lr=0.1)
    >>> theta.square().sum().backward()
    >>> optimizer.step()
    >>> round(theta.item(), 3)
    0.9
    """

    moments = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        parameters: ParamsT,
        lr: float = 1e-3,
        *,
        eps: float = 1e-8,
        max_norm: float = torch.inf,
        num_learners: int = 1,
    ) -> None:
        super().__init__(parameters, lr, eps=eps, fused=True)
        self.flatten_parameters(max_norm, num_learners)

    def update(self, group: dict[str, Any], gradient: Tensor, count: Tensor, *moments: Tensor) -> None:
        """θ ← θ − η m̂ ⊘ (√ŝ + ε)."""
        mean, square = moments
        if self._steps % TINY_EVERY == 0:
            for vector in moments:
                vector.masked_fill_(vector.abs() < TINY, 0.0)
        beta_1, beta_2 = group["betas"]
        adam(
            [self._flat.vector], [gradient], [mean], [square], [], [count],
            fused=True, amsgrad=False, beta1=beta_1, beta2=beta_2, lr=group["lr"], weight_decay=0.0, eps=group["eps"],
            maximize=False,
        )  # fmt: skip
