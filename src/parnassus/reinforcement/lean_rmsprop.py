"""RMSprop for small networks: PyTorch's step on all parameters at once (book sec. 3.3; Hinton's lecture of 2012)."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import RMSprop
from torch.optim.optimizer import ParamsT

from parnassus.reinforcement.one_vector import OneVector


class LeanRMSprop(RMSprop):
    """torch.optim.RMSprop, bit for bit, for one group of parameters that all have gradients.

    Parameters, gradients and mean squares are one vector each: five operations a step, however many layers there are.
    Before it each learner's gradient is shortened to the norm `most`, as `clip_each` does it. Hooks on the step are not
    called.
    """

    def __init__(
        self,
        parameters: ParamsT,
        lr: float = 1e-2,
        *,
        alpha: float = 0.99,
        eps: float = 1e-8,
        most: float = torch.inf,
        learners: int = 1,
    ) -> None:
        super().__init__(parameters, lr, alpha=alpha, eps=eps, foreach=True)
        if len(self.param_groups) > 1:
            raise ValueError(f"all parameters learn alike here; got {len(self.param_groups)} groups")
        self.most, self.learners = most, learners
        self._vector = OneVector(self.param_groups[0]["params"])
        self._known: tuple[Tensor, ...] | None = None

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """θ ← θ − η g ⊘ (√r + ε) for all parameters at once, after r ← α r + (1 − α) g ⊙ g (book eqs. 3.41-3.42)."""
        if closure is not None:
            with torch.enable_grad():
                closure()
        (group,) = self.param_groups
        slope = self._vector.slope(self.most, self.learners)
        if self._known is None:
            self._known = self._vector.remembered(self.state, ("square_avg",))
        count, square = self._known
        count.add_(1)
        square.mul_(group["alpha"]).addcmul_(slope, slope, value=1 - group["alpha"])
        self._vector.whole.addcdiv_(slope, square.sqrt().add_(group["eps"]), value=-group["lr"])

    step.hooked = True  # type: ignore[attr-defined]  # nobody is told before and after

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Another state, of a checkpoint: what is known of the old one is forgotten."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._known = None
