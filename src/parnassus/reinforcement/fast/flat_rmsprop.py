"""RMSprop on one flat parameter vector, for small networks (book sec. 3.3; Hinton's lecture of 2012)."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import RMSprop
from torch.optim.optimizer import ParamsT

from parnassus.reinforcement.fast.flat_parameters import FlatParameters


class FlatRMSprop(RMSprop):
    """torch.optim.RMSprop, bit for bit, for one group of parameters that all have gradients.

    Parameters, gradients and mean squares are one vector each: five operations per step, whatever the number of layers.
    Before a step each learner's gradient is scaled down to `max_norm`, as by `clip_grad_norm_per_learner`. Step hooks
    are not called.
    """

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
        if len(self.param_groups) > 1:
            raise ValueError(f"FlatRMSprop takes one parameter group; got {len(self.param_groups)} groups")
        self.max_norm, self.num_learners = max_norm, num_learners
        self._flat = FlatParameters(self.param_groups[0]["params"])
        self._moments: tuple[Tensor, ...] | None = None

    def zero_grad(self, set_to_none: bool = True) -> None:  # noqa: FBT001, FBT002 - torch's signature
        """Zero the flat gradient in place, whatever `set_to_none`: the parameters' gradients stay views of it."""
        del set_to_none
        self._flat.zero_grad()

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """θ ← θ − η g ⊘ (√r + ε) for all parameters at once, after r ← α r + (1 − α) g ⊙ g (book eqs. 3.41-3.42)."""
        if closure is not None:
            with torch.enable_grad():
                closure()
        (group,) = self.param_groups
        gradient = self._flat.clipped_gradient(self.max_norm, self.num_learners)
        if self._moments is None:
            self._moments = self._flat.flatten_state(self.state, ("square_avg",))
        count, square = self._moments
        count.add_(1)
        square.mul_(group["alpha"]).addcmul_(gradient, gradient, value=1 - group["alpha"])
        self._flat.vector.addcdiv_(gradient, square.sqrt().add_(group["eps"]), value=-group["lr"])

    step.hooked = True  # type: ignore[attr-defined]  # skips torch's step hooks

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Load another state, as from a checkpoint, and drop the flat copies of the old one."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._moments = None
