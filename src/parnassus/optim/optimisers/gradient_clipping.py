"""Gradient clipping by global norm (Zhao sec. 9)."""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.errors import check_positive


def global_norm(gradients: list[Tensor]) -> Float[Tensor, ""]:
    """‖g‖ of all tensors as one vector; 0 for an empty list."""
    if not gradients:
        return torch.zeros(())
    norms = torch.stack([norm.to(gradients[0]) for norm in torch._foreach_norm(gradients)])
    norm: Tensor = torch.linalg.vector_norm(norms)
    return norm


def clip_by_global_norm(gradients: list[Tensor], max_norm: float) -> list[Tensor]:
    """min(1, θ/‖g‖) g: the projection of g onto the ball of radius θ = `max_norm` (Zhao sec. 9).

    All tensors form one vector g and are scaled by one factor. A zero gradient is unchanged; the device is not
    synchronised.
    """
    scale = _clip_factor(global_norm(gradients), max_norm)
    return [gradient * scale.to(gradient) for gradient in gradients]


@torch.no_grad()
def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> Float[Tensor, ""]:
    """Clip the gradients of `parameters` in place, between backward and step; return their norm before clipping."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = global_norm(gradients)
    scale = _clip_factor(norm, max_norm)
    for gradient in gradients:
        gradient.mul_(scale.to(gradient))
    return norm


def _clip_factor(norm: Float[Tensor, ""], max_norm: float) -> Float[Tensor, ""]:
    check_positive(max_norm=max_norm)
    return torch.clamp(max_norm / norm, max=1.0)  # 1 where the norm is 0, as max_norm / 0 is ∞
