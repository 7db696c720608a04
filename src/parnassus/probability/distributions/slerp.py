"""Spherical linear interpolation between Gaussian vectors (Shoemake 1985)."""

import torch
from jaxtyping import Float
from torch import Tensor


def slerp(
    start: Float[Tensor, "*batch d"], end: Float[Tensor, "*batch d"], fraction: float | Float[Tensor, "*points 1"]
) -> Float[Tensor, "*out d"]:
    """The point at `fraction` of the great arc from start to end; the norm is interpolated linearly.

        x(s) = ((1 − s) ‖start‖ + s ‖end‖) (sin((1 − s) θ) u + sin(s θ) v) / sin θ,   cos θ = uᵀv

    u and v are the unit vectors of both ends. In many dimensions N(0, I) concentrates on a thin shell, which the
    interpolant stays on and a straight line leaves. Parallel and opposite ends are joined by the straight line.
    """
    norm_u, norm_v = (torch.linalg.vector_norm(x, dim=-1, keepdim=True) for x in (start, end))
    if not bool((norm_u > 0).all() and (norm_v > 0).all()):
        raise ValueError("start and end must lie away from the origin; one of them is 0")
    u, v = start / norm_u, end / norm_v
    theta = (u * v).sum(-1, keepdim=True).clamp(-1, 1).arccos()
    arc = (((1 - fraction) * theta).sin() * u + (fraction * theta).sin() * v) / theta.sin()
    norm = (1 - fraction) * norm_u + fraction * norm_v
    straight = (1 - fraction) * start + fraction * end  # the limit where the angle vanishes
    return torch.where(theta.sin() > 1e-6, norm * arc, straight)
