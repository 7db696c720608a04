"""A network as a function f_θ of one parameter vector θ (Diehl sec. 1)."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

NetworkFunction: TypeAlias = Callable[[Tensor], Tensor]


def flatten_parameters(module: nn.Module) -> Float[Tensor, " count"]:
    """A copy of θ ∈ ℝᵖ: all parameters as one vector, in the order of `module.named_parameters()`."""
    parts = [parameter.detach().reshape(-1) for parameter in module.parameters()]
    if not parts:
        raise ValueError(f"module must have parameters; got {module!r}")
    return torch.cat(parts)


def unflatten_parameters(module: nn.Module, vector: Float[Tensor, " count"]) -> dict[str, Tensor]:
    """Split a vector into tensors with the module's names and shapes: the inverse of `flatten_parameters`.

    They are views, through which gradients flow; `module.load_state_dict(…, strict=False)` loads them.
    """
    named = dict(module.named_parameters())
    sizes = [parameter.numel() for parameter in named.values()]
    if sum(sizes) != len(vector):
        raise ValueError(f"vector must have one entry per parameter; got {len(vector)} entries for {sum(sizes)}")
    parts = zip(named.items(), vector.split(sizes), strict=True)
    return {name: part.view_as(parameter) for (name, parameter), part in parts}


def with_parameters(module: nn.Module, vector: Float[Tensor, " count"]) -> NetworkFunction:
    """The function f_θ of the module with θ = `vector` in place of its own parameters (Diehl sec. 1).

    The module is not modified, and the result is differentiable with respect to `vector`.
    """
    parameters = unflatten_parameters(module, vector)

    def network(x: Tensor) -> Tensor:
        output: Tensor = functional_call(module, parameters, (x,))
        return output

    return network
