"""Pictures moved, turned and scaled a little at random: more data from the same data."""

from math import radians

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample


def random_affine(
    images: Float[Tensor, "batch channels height width"],
    *,
    shift: float = 2.0,
    turn: float = 10.0,
    scale: float = 0.1,
) -> Float[Tensor, "batch channels height width"]:
    """Each picture under its own small map: up to `shift` pixels, `turn` degrees, and 1 ± `scale` in size.

        source(p) = s R(φ) p + t,   φ, s and t uniform, p in the frame [−1, 1]²

    What lies outside is 0. Drawn on the pictures' device from torch's generator there.
    """
    if shift < 0 or turn < 0 or not 0 <= scale < 1:
        raise ValueError(f"need shift ≥ 0, turn ≥ 0 and 0 ≤ scale < 1; got shift={shift}, turn={turn}, scale={scale}")
    angle, size, across, up = 2 * torch.rand(4, len(images), device=images.device, dtype=images.dtype) - 1
    angle, size = angle * radians(turn), 1 + scale * size
    height, width = images.shape[-2:]
    rows = [
        torch.stack([size * angle.cos(), -size * angle.sin(), 2 * shift / width * across], 1),
        torch.stack([size * angle.sin(), size * angle.cos(), 2 * shift / height * up], 1),
    ]
    grid = affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
    return grid_sample(images, grid, align_corners=False)
