"""A network as a function f_θ of one vector θ of parameters, and back (Diehl sec. 1)."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

Network: TypeAlias = Callable[[Tensor], Tensor]


def flatten(module: nn.Module) -> Float[Tensor, " count"]:
    """A copy of θ ∈ ℝᵖ: every parameter laid out as one vector, in the order of `module.named_parameters()`."""
    parts = [parameter.detach().reshape(-1) for parameter in module.parameters()]
    if not parts:
        raise ValueError(f"a module without parameters has no parameter vector; got {module!r}")
    return torch.cat(parts)


def unflatten(module: nn.Module, vector: Float[Tensor, " count"]) -> dict[str, Tensor]:
    """The vector cut into tensors of the module's names and shapes: the inverse of `flatten`.

    They are views: gradients pass. `module.load_state_dict(unflatten(module, vector), strict=False)` writes them in.
    """
    named = dict(module.named_parameters())
    sizes = [parameter.numel() for parameter in named.values()]
    if sum(sizes) != len(vector):
        raise ValueError(f"the vector must have a number for each parameter; got {len(vector)} for {sum(sizes)}")
    parts = zip(named.items(), vector.split(sizes), strict=True)
    return {name: part.view_as(parameter) for (name, parameter), part in parts}


def with_parameters(module: nn.Module, vector: Float[Tensor, " count"]) -> Network:
    """f_θ for θ = `vector`: the function the module computes, with these parameters in place of its own (Diehl sec. 1).

    The module itself stays as it is, and the result can be differentiated with respect to `vector`.
    """
    parameters = unflatten(module, vector)

    def network(x: Tensor) -> Tensor:
        output: Tensor = functional_call(module, parameters, (x,))
        return output

    return network
