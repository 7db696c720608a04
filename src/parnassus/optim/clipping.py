"""Gradient clipping: shorten what is too long, keep where it points (Zhao sec. 9)."""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn


def global_norm(gradients: list[Tensor]) -> Float[Tensor, ""]:
    """‖g‖ of all tensors read as one vector; of none, 0."""
    if not gradients:
        return torch.zeros(())
    norms = torch.stack([norm.to(gradients[0]) for norm in torch._foreach_norm(gradients)])
    norm: Tensor = torch.linalg.vector_norm(norms)
    return norm


def clipped(gradients: list[Tensor], limit: float) -> list[Tensor]:
    """min(1, θ/‖g‖) g: the nearest point to g in the ball of radius θ = `limit` (Zhao sec. 9).

    All tensors are one vector g and shrink by one factor. A zero gradient stays, and nothing waits for the device.
    """
    scale = _scale(global_norm(gradients), limit)
    return [gradient * scale.to(gradient) for gradient in gradients]


@torch.no_grad()
def clip_gradients(parameters: Iterable[nn.Parameter], limit: float) -> Float[Tensor, ""]:
    """Clip the gradients of `parameters` in place, between backward and step; gives their norm before."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = global_norm(gradients)
    scale = _scale(norm, limit)
    for gradient in gradients:
        gradient.mul_(scale.to(gradient))
    return norm


def _scale(norm: Float[Tensor, ""], limit: float) -> Float[Tensor, ""]:
    if not limit > 0:
        raise ValueError(f"the limit of a norm must be positive; got limit={limit}")
    return torch.clamp(limit / norm, max=1.0)  # 1 where the norm is 0, for limit / 0 is ∞
