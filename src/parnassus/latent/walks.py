"""Walks through a latent space: from one code to another, and along one coordinate (book secs. 4.5, 5.2)."""

import torch
from jaxtyping import Float
from torch import Tensor


def straight(
    start: Float[Tensor, " latent"], end: Float[Tensor, " latent"], *, count: int = 8
) -> Float[Tensor, "count latent"]:
    """Codes on the line from `start` to `end`, both included."""
    share = _shares(count, start)
    return (1 - share) * start + share * end


def great_circle(
    start: Float[Tensor, " latent"], end: Float[Tensor, " latent"], *, count: int = 8
) -> Float[Tensor, "count latent"]:
    """Codes that turn from `start` to `end` while their length goes straight from one's to the other's.

        z(t) = r(t) (sin((1 − t) ω) u + sin(t ω) v) / sin ω,   cos ω = uᵀv

    In many dimensions N(0, I) lives on a thin shell; the middle of a straight line falls inside it, this one does not.
    """
    lengths: Tensor = torch.linalg.vector_norm(torch.stack([start, end]), dim=-1)
    if not bool((lengths > 0).all()):
        raise ValueError("a great circle needs two codes away from the origin; one of them is 0")
    u, v = start / lengths[0], end / lengths[1]
    angle = torch.arccos((u @ v).clamp(-1, 1))
    if float(angle.sin()) < 1e-6:  # no turn to make, or no plane to make it in
        return straight(start, end, count=count)
    share = _shares(count, start)
    turned = (torch.sin((1 - share) * angle) * u + torch.sin(share * angle) * v) / angle.sin()
    length = (1 - share) * lengths[0] + share * lengths[1]
    return length * turned


def traverse(
    code: Float[Tensor, " latent"], coordinate: int, *, reach: float = 3.0, count: int = 9
) -> Float[Tensor, "count latent"]:
    """`code` with one coordinate moved from −`reach` to `reach`, in prior deviations."""
    if not 0 <= coordinate < len(code):
        raise ValueError(f"coordinate must lie between 0 and {len(code) - 1}; got coordinate={coordinate}")
    codes = code.repeat(count, 1)
    codes[:, coordinate] = torch.linspace(-reach, reach, count, dtype=code.dtype, device=code.device)
    return codes


def _shares(count: int, like: Tensor) -> Float[Tensor, "count 1"]:
    if count < 2:
        raise ValueError(f"a walk needs at least its two ends; got count={count}")
    return torch.linspace(0, 1, count, dtype=like.dtype, device=like.device)[:, None]
