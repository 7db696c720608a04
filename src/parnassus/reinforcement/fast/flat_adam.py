"""Adam on one flat parameter vector, for small networks (Kingma and Ba 2015)."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import Adam, adam
from torch.optim.optimizer import ParamsT

from parnassus.reinforcement.fast.flat_parameters import FlatParameters

TINY, TINY_EVERY = 1e-34, 64
"""Moments smaller than TINY are set to 0 every TINY_EVERY steps. Those of dead units decay by β per step until they
are denormal and slow: with 40 % of 67,000 denormal moments a step took 58 µs, without them 31. The weights do not
change, since ε is larger by far."""


class FlatAdam(Adam):
    """torch.optim.Adam(fused=True) for one group of parameters that all have gradients.

    Results differ from torch's by at most one bit: the remainder of a parameter's last cache line is rounded
    differently there. Collecting the state at every step takes longer than the step of some ten thousand weights; here
    parameters, gradients and state are one vector each. Before a step each learner's gradient is scaled down to
    `max_norm`, as by `clip_grad_norm_per_learner`. Step hooks are not called.
    """

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
        if len(self.param_groups) > 1:
            raise ValueError(f"FlatAdam takes one parameter group; got {len(self.param_groups)} groups")
        self.max_norm, self.num_learners = max_norm, num_learners
        self._flat = FlatParameters(self.param_groups[0]["params"])
        self._moments: tuple[Tensor, ...] | None = None
        self._steps = 0

    def zero_grad(self, set_to_none: bool = True) -> None:  # noqa: FBT001, FBT002 - torch's signature
        """Zero the flat gradient in place, whatever `set_to_none`: the parameters' gradients stay views of it."""
        del set_to_none
        self._flat.zero_grad()

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """θ ← θ − η m̂ ⊘ (√ŝ + ε) for all parameters at once."""
        if closure is not None:
            with torch.enable_grad():
                closure()
        (group,) = self.param_groups
        gradient = self._flat.clipped_gradient(self.max_norm, self.num_learners)
        if self._moments is None:
            self._moments = self._flat.flatten_state(self.state, ("exp_avg", "exp_avg_sq"))
            self._steps = int(self._moments[0])
        count, mean, square = self._moments
        if self._steps % TINY_EVERY == 0:
            for vector in (mean, square):
                vector.masked_fill_(vector.abs() < TINY, 0.0)
        self._steps += 1
        beta_1, beta_2 = group["betas"]
        adam(
            [self._flat.vector], [gradient], [mean], [square], [], [count],
            fused=True, amsgrad=False, beta1=beta_1, beta2=beta_2, lr=group["lr"], weight_decay=0.0, eps=group["eps"],
            maximize=False,
        )  # fmt: skip

    step.hooked = True  # type: ignore[attr-defined]  # skips torch's step hooks

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Load another state, as from a checkpoint, and drop the flat copies of the old one."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._moments = None
