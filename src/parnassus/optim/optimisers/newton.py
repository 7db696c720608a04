"""Newton's method: gradient steps preconditioned by the Hessian (book sec. 3.3)."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad, jacrev

from parnassus.errors import check_positive
from parnassus.optim.optimisers.gradient_descent import Loss


def preconditioned_step(
    theta: Float[Tensor, " dim"],
    gradient: Float[Tensor, " dim"],
    matrix: Float[Tensor, "dim dim"],
    *,
    learning_rate: float = 1.0,
) -> Float[Tensor, " dim"]:
    """θ − η H⁻¹ g (book eq. 3.33).

    On ½ θᵀAθ + bᵀθ + c with a symmetric invertible A, η = 1 and H = A lead to the minimum from every start; the new
    gradient is (I − A H⁻¹) g. From a single start, any H with H⁻¹g = A⁻¹g reaches the minimum (book ex. 3.2).
    """
    direction: Tensor = torch.linalg.solve(matrix, gradient)
    return theta - learning_rate * direction


def newton_descent(
    loss: Loss, start: Float[Tensor, " dim"], *, steps: int, learning_rate: float = 1.0
) -> Float[Tensor, "path dim"]:
    """Iterates θ ← θ − η (∇²ℓ)⁻¹ ∇ℓ of Newton's method, the start included (book eq. 3.33).

    It converges to a stationary point, which is a minimum only where the curvature is positive.
    """
    check_positive(learning_rate=learning_rate)
    gradient, hessian = grad(loss), jacrev(grad(loss))
    path = [start]
    for _ in range(steps):
        path.append(preconditioned_step(path[-1], gradient(path[-1]), hessian(path[-1]), learning_rate=learning_rate))
    return torch.stack(path)
