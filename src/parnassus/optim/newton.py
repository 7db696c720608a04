"""Preconditioned steps, and Newton's method as the one whose matrix is the Hessian (book sec. 3.3)."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad, jacrev

from parnassus.optim.gradient_descent import Loss


def preconditioned_step(
    theta: Float[Tensor, " dim"],
    gradient: Float[Tensor, " dim"],
    matrix: Float[Tensor, "dim dim"],
    *,
    rate: float = 1.0,
) -> Float[Tensor, " dim"]:
    """θ − η H⁻¹ g (book eq. 3.33).

    On ½ θᵀAθ + bᵀθ + c with a symmetric invertible A, η = 1 and H = A lead to the minimum from everywhere; the new
    gradient is (I − A H⁻¹) g. A single start does not determine H: any H with H⁻¹g = A⁻¹g does (book ex. 3.2).
    """
    direction: Tensor = torch.linalg.solve(matrix, gradient)
    return theta - rate * direction


def newton_descent(
    loss: Loss, start: Float[Tensor, " dim"], *, steps: int, rate: float = 1.0
) -> Float[Tensor, "path dim"]:
    """Steps preconditioned by the Hessian, the start included: θ − η (∇²ℓ)⁻¹ ∇ℓ (book eq. 3.33).

    It goes to the nearest point without slope, which is a minimum only where the curvature is positive.
    """
    if not rate > 0:
        raise ValueError(f"the learning rate must be positive; got rate={rate}")
    slope, curvature = grad(loss), jacrev(grad(loss))
    path = [start]
    for _ in range(steps):
        path.append(preconditioned_step(path[-1], slope(path[-1]), curvature(path[-1]), rate=rate))
    return torch.stack(path)
