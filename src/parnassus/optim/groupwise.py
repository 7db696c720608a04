"""What every optimiser here shares: torch's interface, and the walk over groups of parameters."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeAlias, cast

import torch
from torch import Tensor
from torch.optim import Optimizer

Group: TypeAlias = dict[str, Any]
"""As torch keeps it: parameters with the settings that hold for them, lr, weight_decay and those of the method."""

CACHED = 2**17
"""Numbers in the tensors of a bundle on the CPU; with gradients and memories they are two megabytes."""


class GroupwiseOptimizer(Optimizer):
    """An optimiser of torch whose step is one `update` of lists of tensors, a few kernels for a whole group.

    It has what torch's own have: groups with settings of their own, a state_dict, closures, schedulers. Ascent is
    descent on −ℓ.
    """

    single_pass: ClassVar[bool] = False
    """Whether an update goes over its tensors just once: if not, the CPU does better bundle by bundle."""

    @abstractmethod
    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        """Change the tensors of `theta` in place, by what the method makes of their gradients and its memory."""

    def check(self, group: Group) -> None:
        """Refuse settings that cannot work; a method adds its own rules."""
        if not group["lr"] > 0:
            raise ValueError(f"the learning rate must be positive; got lr={group['lr']}")
        if not group["weight_decay"] >= 0:
            raise ValueError(f"the weight decay must not be negative; got weight_decay={group['weight_decay']}")
        if not group.get("eps", 0.0) >= 0:
            raise ValueError(f"what is added to the root must not be negative; got eps={group['eps']}")

    def add_param_group(self, param_group: Group) -> None:
        self.check({**self.defaults, **param_group})
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]  # torch overloads it
        """Update every parameter that has a gradient; a closure is called first, and its loss returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            moving = [parameter for parameter in group["params"] if parameter.grad is not None]
            for theta in [moving] if self.single_pass else bundles(moving):
                gradient = [cast("Tensor", parameter.grad) for parameter in theta]
                if any(slope.is_sparse for slope in gradient):
                    raise ValueError(f"{type(self).__name__} needs dense gradients; got a sparse one")
                self.update(group, theta, gradient)
        return loss

    def remembered(self, name: str, theta: list[Tensor]) -> list[Tensor]:
        """The tensor kept under `name` for each parameter, zeros before its first step."""
        for parameter in theta:
            if name not in self.state[parameter]:
                self.state[parameter][name] = torch.zeros_like(parameter)
        return [self.state[parameter][name] for parameter in theta]

    def counted(self, theta: list[Tensor]) -> list[int]:
        """Which step this is for each parameter: 1, 2, …."""
        for parameter in theta:
            self.state[parameter]["step"] = self.state[parameter].get("step", 0) + 1
        return [self.state[parameter]["step"] for parameter in theta]


def bundles(tensors: list[Tensor]) -> Iterator[list[Tensor]]:
    """What is best updated together: on a GPU everything, on the CPU what stays in the cache through all passes."""
    bundle: list[Tensor] = []
    room = CACHED
    for tensor in tensors:
        room -= tensor.numel() if tensor.is_cpu else 0
        if bundle and room < 0:
            yield bundle
            bundle, room = [], CACHED - tensor.numel()
        bundle.append(tensor)
    if bundle:
        yield bundle


def with_l2(gradient: list[Tensor], theta: list[Tensor], weight_decay: float) -> list[Tensor]:
    """∇ℓ + λ θ: the gradient of ℓ + ½ λ ‖θ‖², which an adaptive method then rescales with the rest."""
    if weight_decay == 0:
        return gradient
    return list(torch._foreach_add(gradient, theta, alpha=weight_decay))
