"""Base class of all optimisers: the interface of torch, with updates of lists of tensors by foreach kernels."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeAlias, cast

import torch
from torch import Tensor
from torch.optim import Optimizer

Group: TypeAlias = dict[str, Any]
"""A parameter group of torch: parameters with their settings lr, weight_decay and those of the method."""

CHUNK_SIZE = 2**17
"""Elements per chunk on the CPU; with gradients and optimiser state a chunk takes two megabytes."""


class ForeachOptimizer(Optimizer):
    """A torch optimiser whose step is one `update` of lists of tensors, a few kernels for a whole group.

    It supports what torch's optimisers support: parameter groups, state_dict, closures and schedulers. To maximise ℓ,
    minimise −ℓ.

    >>> issubclass(SGD, ForeachOptimizer), issubclass(SGD, torch.optim.Optimizer)
    (True, True)
    """

    is_single_pass: ClassVar[bool] = False
    """Whether an update reads its tensors only once; if not, the CPU is faster chunk by chunk."""

    @abstractmethod
    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        """Update the tensors of `theta` in place from their gradients and the optimiser state."""

    def check_group(self, group: Group) -> None:
        """Raise a ValueError on invalid settings; subclasses add their own checks."""
        if not group["lr"] > 0:
            raise ValueError(f"the learning rate must be positive; got lr={group['lr']}")
        if not group["weight_decay"] >= 0:
            raise ValueError(f"the weight decay must not be negative; got weight_decay={group['weight_decay']}")
        if not group.get("eps", 0.0) >= 0:
            raise ValueError(f"eps must not be negative; got eps={group['eps']}")

    def add_param_group(self, param_group: Group) -> None:
        self.check_group({**self.defaults, **param_group})
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]  # torch overloads it
        """Update every parameter that has a gradient; a closure is called first, and its loss returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            active = [parameter for parameter in group["params"] if parameter.grad is not None]
            for theta in [active] if self.is_single_pass else split_into_chunks(active):
                gradient = [cast("Tensor", parameter.grad) for parameter in theta]
                if any(g.is_sparse for g in gradient):
                    raise ValueError(f"{type(self).__name__} needs dense gradients; got a sparse one")
                self.update(group, theta, gradient)
        return loss

    def state_tensors(self, name: str, theta: list[Tensor]) -> list[Tensor]:
        """The state tensor `name` of each parameter, zeros before its first step."""
        for parameter in theta:
            if name not in self.state[parameter]:
                self.state[parameter][name] = torch.zeros_like(parameter)
        return [self.state[parameter][name] for parameter in theta]

    def increment_steps(self, theta: list[Tensor]) -> list[int]:
        """The number t = 1, 2, … of this step for each parameter."""
        for parameter in theta:
            self.state[parameter]["step"] = self.state[parameter].get("step", 0) + 1
        return [self.state[parameter]["step"] for parameter in theta]


def split_into_chunks(tensors: list[Tensor]) -> Iterator[list[Tensor]]:
    """Split tensors into lists to update together: on a GPU one list, on the CPU lists that fit into the cache."""
    chunk: list[Tensor] = []
    remaining = CHUNK_SIZE
    for tensor in tensors:
        remaining -= tensor.numel() if tensor.is_cpu else 0
        if chunk and remaining < 0:
            yield chunk
            chunk, remaining = [], CHUNK_SIZE - tensor.numel()
        chunk.append(tensor)
    if chunk:
        yield chunk


def add_l2(gradient: list[Tensor], theta: list[Tensor], weight_decay: float) -> list[Tensor]:
    """∇ℓ + λ θ: the gradient of ℓ + ½ λ ‖θ‖², which adaptive methods then rescale as a whole."""
    if weight_decay == 0:
        return gradient
    return list(torch._foreach_add(gradient, theta, alpha=weight_decay))


def root_scaled_step(group: Group, theta: list[Tensor], direction: list[Tensor], squares: list[Tensor]) -> None:
    """θ ← θ − η d ⊘ (√r + ε) in place, for all parameters."""
    root = torch._foreach_sqrt(squares)
    torch._foreach_add_(root, group["eps"])
    torch._foreach_addcdiv_(theta, direction, root, -group["lr"])
