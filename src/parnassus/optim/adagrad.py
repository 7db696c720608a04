"""AdaGrad: divide each step by the root of all squared gradients so far (book sec. 3.3)."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim.optimizer import ParamsT

from parnassus.optim.groupwise import Group, GroupwiseOptimizer, with_l2


class AdaGrad(GroupwiseOptimizer):
    """AdaGrad, coordinate by coordinate (book eqs. 3.38-3.39).

    s ← s + g ⊙ g,   s = 0 at first
    θ ← θ − η g ⊘ (√s + ε)
    """

    def __init__(self, parameters: ParamsT, lr: float = 1e-2, *, eps: float = 1e-10, weight_decay: float = 0.0) -> None:
        super().__init__(parameters, {"lr": lr, "eps": eps, "weight_decay": weight_decay})

    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        gradient = with_l2(gradient, theta, group["weight_decay"])
        squares = self.remembered("squares", theta)
        torch._foreach_addcmul_(squares, gradient, gradient)
        root = torch._foreach_sqrt(squares)
        torch._foreach_add_(root, group["eps"])
        torch._foreach_addcdiv_(theta, gradient, root, -group["lr"])


class FullAdaGrad(GroupwiseOptimizer):
    """AdaGrad with the whole matrix, for small problems: it turns with the coordinates (book eqs. 3.34-3.35).

        S ← S + g gᵀ,   S = 0 at first
        θ ← θ − η G⁻¹ g,   G = S^{1/2}

    Each tensor, read as a vector of d numbers, has its own d × d matrix; a step takes d³ operations. Before there are d
    independent gradients G is singular, and G⁻¹ its pseudo-inverse: `cutoff` times the largest eigenvalue of S counts
    as zero.
    """

    def __init__(
        self, parameters: ParamsT, lr: float = 1e-2, *, cutoff: float = 1e-12, weight_decay: float = 0.0
    ) -> None:
        super().__init__(parameters, {"lr": lr, "cutoff": cutoff, "weight_decay": weight_decay})

    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        for parameter, slope in zip(theta, with_l2(gradient, theta, group["weight_decay"]), strict=True):
            g = slope.flatten()
            state = self.state[parameter]
            state["outer"] = state.get("outer", 0) + torch.outer(g, g)
            step = inverse_root(state["outer"], group["cutoff"]) @ g
            parameter.sub_(step.view_as(parameter), alpha=group["lr"])


def inverse_root(matrix: Float[Tensor, "dim dim"], cutoff: float) -> Float[Tensor, "dim dim"]:
    """(S^{1/2})⁺ of a symmetric S ⪰ 0: eigenvalues up to `cutoff` (or rounding) times the largest are left out."""
    values, vectors = torch.linalg.eigh(matrix)
    kept = values > max(cutoff, len(values) * torch.finfo(values.dtype).eps) * values[-1]
    root: Tensor = vectors * torch.where(kept, values, torch.inf).rsqrt() @ vectors.mT
    return root
