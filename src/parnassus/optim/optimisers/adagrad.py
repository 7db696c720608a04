"""AdaGrad: divide each step by the root of the sum of all squared gradients (book sec. 3.3)."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim.optimizer import ParamsT

from parnassus.optim.optimisers.foreach_optimizer import ForeachOptimizer, Group, add_l2, root_scaled_step


class AdaGrad(ForeachOptimizer):
    """Diagonal AdaGrad (book eqs. 3.38-3.39).

    s ← s + g ⊙ g,   s = 0 initially
    θ ← θ − η g ⊘ (√s + ε)

    >>> theta = nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = AdaGrad([theta], lr=0.1)
    >>> theta.square().sum().backward()
    >>> optimizer.step()
    >>> round(theta.item(), 4)
    0.9
    """

    def __init__(self, parameters: ParamsT, lr: float = 1e-2, *, eps: float = 1e-10, weight_decay: float = 0.0) -> None:
        super().__init__(parameters, {"lr": lr, "eps": eps, "weight_decay": weight_decay})

    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        gradient = add_l2(gradient, theta, group["weight_decay"])
        squares = self.state_tensors("squares", theta)
        torch._foreach_addcmul_(squares, gradient, gradient)
        root_scaled_step(group, theta, gradient, squares)


class FullAdaGrad(ForeachOptimizer):
    """Full-matrix AdaGrad, rotation equivariant, for small problems (book eqs. 3.34-3.35).

        S ← S + g gᵀ,   S = 0 initially
        θ ← θ − η G⁻¹ g,   G = S^{1/2}

    Each tensor with d elements has its own d × d matrix; a step takes O(d³) operations. Before there are d independent
    gradients G is singular and G⁻¹ is its pseudo-inverse: eigenvalues of S up to `cutoff` times the largest are
    treated as zero.

    >>> theta = nn.Parameter(torch.tensor([1.0, 0.0]))
    >>> optimizer = FullAdaGrad([theta], lr=0.1)
    >>> theta.square().sum().backward()
    >>> optimizer.step()
    >>> theta.detach()
    tensor([0.9000, 0.0000])
    """

    def __init__(
        self, parameters: ParamsT, lr: float = 1e-2, *, cutoff: float = 1e-12, weight_decay: float = 0.0
    ) -> None:
        super().__init__(parameters, {"lr": lr, "cutoff": cutoff, "weight_decay": weight_decay})

    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        for parameter, each in zip(theta, add_l2(gradient, theta, group["weight_decay"]), strict=True):
            g = each.flatten()
            state = self.state[parameter]
            state["outer"] = state.get("outer", 0) + torch.outer(g, g)
            step = inverse_root(state["outer"], group["cutoff"]) @ g
            parameter.sub_(step.view_as(parameter), alpha=group["lr"])


def inverse_root(matrix: Float[Tensor, "dim dim"], cutoff: float) -> Float[Tensor, "dim dim"]:
    """(S^{1/2})⁺ of a symmetric S ⪰ 0; eigenvalues ≤ `cutoff` (or rounding) times the largest are treated as zero."""
    values, vectors = torch.linalg.eigh(matrix)
    is_nonzero = values > max(cutoff, len(values) * torch.finfo(values.dtype).eps) * values[-1]
    root: Tensor = vectors * torch.where(is_nonzero, values, torch.inf).rsqrt() @ vectors.mT
    return root
