"""Adam for small networks: PyTorch's fused step without what is done around it (Kingma and Ba 2015)."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam
from torch.optim.optimizer import ParamsT


class LeanAdam(Adam):
    """torch.optim.Adam(fused=True), bit for bit, for one group of parameters that all have gradients.

    Collecting the state anew at each step takes longer than the step of a network of some ten thousand weights; here it
    is collected once. Hooks on the step are not called.
    """

    def __init__(self, parameters: ParamsT, lr: float = 1e-3, *, eps: float = 1e-8) -> None:
        super().__init__(parameters, lr, eps=eps, fused=True)
        if len(self.param_groups) > 1:
            raise ValueError(f"all parameters learn alike here; got {len(self.param_groups)} groups")
        self._known: tuple[list[Tensor], ...] | None = None

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """θ ← θ − η m̂ ⊘ (√ŝ + ε) for all parameters at once."""
        (group,) = self.param_groups
        if self._known is None or closure is not None:
            super().step(closure)  # makes the state
            states = [self.state[parameter] for parameter in group["params"]]
            self._known = tuple([state[key] for state in states] for key in ("exp_avg", "exp_avg_sq", "step"))
            return
        means, squares, counts = self._known
        beta_1, beta_2 = group["betas"]
        with torch.no_grad():
            torch._foreach_add_(counts, 1)
            torch._fused_adam_(
                group["params"], [parameter.grad for parameter in group["params"]], means, squares, [], counts,
                lr=group["lr"], beta1=beta_1, beta2=beta_2, weight_decay=0.0, eps=group["eps"], amsgrad=False,
                maximize=False,
            )  # fmt: skip

    step.hooked = True  # type: ignore[attr-defined]  # nobody is told before and after

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Another state, of a checkpoint: what is known of the old one is forgotten."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._known = None
