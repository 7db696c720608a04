"""Adam and AdamW: momentum and RMSProp combined, with bias correction (book sec. 3.3; Kingma and Ba 2015)."""

from math import sqrt

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from parnassus.optim.optimisers.foreach_optimizer import ForeachOptimizer, Group, add_l2


class Adam(ForeachOptimizer):
    """Adam: moving averages of gradient and squared gradient, t = 1, 2, … (book eqs. 3.43-3.48, Diehl sec. 1.5).

        m ← β₁ m + (1 − β₁) g,       m̂ = m / (1 − β₁ᵗ)
        s ← β₂ s + (1 − β₂) g ⊙ g,   ŝ = s / (1 − β₂ᵗ)
        θ ← θ − η m̂ ⊘ (√ŝ + ε)

    Weight decay is L2: λθ is added to the gradient, so that weights with large gradients decay less. See `AdamW`.

    >>> theta = nn.Parameter(torch.tensor([1.0, -5.0]))
    >>> optimizer = Adam([theta], lr=0.1)
    >>> theta.square().sum().backward()
    >>> optimizer.step()
    >>> theta.detach()
    tensor([ 0.9000, -4.9000])
    """

    def __init__(
        self,
        parameters: ParamsT,
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def check_group(self, group: Group) -> None:
        super().check_group(group)
        if not all(0 <= beta < 1 for beta in group["betas"]):
            raise ValueError(f"betas must satisfy 0 ≤ beta < 1; got betas={group['betas']}")

    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        self.adam_step(group, theta, add_l2(gradient, theta, group["weight_decay"]))

    def adam_step(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        """Apply m̂ ⊘ (√ŝ + ε) as c / (1 − β₁ᵗ) m ⊘ (√s + c ε) with c = √(1 − β₂ᵗ), which saves a pass."""
        beta_1, beta_2 = group["betas"]
        mean, squares = self.state_tensors("mean", theta), self.state_tensors("squares", theta)
        count = self.increment_steps(theta)
        torch._foreach_lerp_(mean, gradient, 1 - beta_1)
        torch._foreach_mul_(squares, beta_2)
        torch._foreach_addcmul_(squares, gradient, gradient, 1 - beta_2)
        c = [sqrt(1 - beta_2**t) for t in count]
        root = torch._foreach_sqrt(squares)
        torch._foreach_add_(root, [group["eps"] * c_t for c_t in c])
        rates = [-group["lr"] * c_t / (1 - beta_1**t) for c_t, t in zip(c, count, strict=True)]
        torch._foreach_addcdiv_(theta, mean, root, rates)


class AdamW(Adam):
    """Adam with decoupled weight decay: all weights shrink by the same factor (Loshchilov and Hutter 2019).

    θ ← (1 − ηλ) θ, then Adam's step with the gradient alone.

    >>> theta = nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = AdamW([theta], lr=0.1, weight_decay=0.5)
    >>> theta.square().sum().backward()
    >>> optimizer.step()
    >>> round(theta.item(), 4)
    0.85
    """

    def __init__(
        self,
        parameters: ParamsT,
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(parameters, lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def update(self, group: Group, theta: list[Tensor], gradient: list[Tensor]) -> None:
        torch._foreach_mul_(theta, 1 - group["lr"] * group["weight_decay"])
        self.adam_step(group, theta, gradient)
