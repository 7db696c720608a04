"""Optimisers that update one flat vector of all parameters, for small networks."""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim import Optimizer

from parnassus.reinforcement.fast.flat_parameters import FlatParameters


class FlatOptimizer(Optimizer):
    """The common part of `FlatAdam` and `FlatRMSprop`, for one group of parameters that all have gradients.

    Parameters, gradients and moments are one vector each. Before a step each learner's gradient is scaled down to
    `max_norm`, as by `clip_grad_norm_per_learner`. Step hooks are not called.

    A subclass inherits from this class and from torch's optimiser, calls `flatten_parameters` at the end of its
    constructor, and defines `moments` and `update`.
    """

    moments: ClassVar[tuple[str, ...]]
    """The names of torch's state that holds the moments."""

    def update(self, group: dict[str, Any], gradient: Tensor, count: Tensor, *moments: Tensor) -> None:
        """Update the flat parameters, the step count and the moments in place."""
        raise NotImplementedError

    def flatten_parameters(self, max_norm: float, num_learners: int) -> None:
        """Make the parameters and their gradients views of one vector each."""
        if len(self.param_groups) > 1:
            raise ValueError(f"{type(self).__name__} takes one parameter group; got {len(self.param_groups)} groups")
        self.max_norm, self.num_learners = max_norm, num_learners
        self._flat = FlatParameters(self.param_groups[0]["params"])
        self._state: tuple[Tensor, ...] | None = None
        self._steps = 0

    def zero_grad(self, set_to_none: bool = True) -> None:  # noqa: FBT001, FBT002 - torch's signature
        """Zero the flat gradient in place; `set_to_none` is ignored, since the gradients are views of it."""
        del set_to_none
        self._flat.zero_grad()

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Update all parameters at once."""
        if closure is not None:
            with torch.enable_grad():
                closure()
        (group,) = self.param_groups
        gradient = self._flat.clipped_gradient(self.max_norm, self.num_learners)
        if self._state is None:
            self._state = self._flat.flatten_state(self.state, self.moments)
            self._steps = int(self._state[0])
        self.update(group, gradient, *self._state)
        self._steps += 1

    step.hooked = True  # type: ignore[attr-defined]  # skips torch's step hooks

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Load another state, as from a checkpoint, and drop the flat copies of the old one."""
        super().__setstate__(state)
        self._state = None
