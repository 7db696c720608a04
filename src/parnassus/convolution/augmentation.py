"""Image augmentation by random affine transforms."""

from math import radians

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample


def random_affine(
    images: Float[Tensor, "batch channels height width"],
    *,
    translate: float = 2.0,
    degrees: float = 10.0,
    scale: float = 0.1,
) -> Float[Tensor, "batch channels height width"]:
    """A random affine transform of each image: translation, rotation and scaling.

        source(p) = s R(φ) p + t,   p in [−1, 1]²

    φ, s and t are uniform: up to ± `degrees`, 1 ± `scale` and ± `translate` pixels. Pixels from outside are 0.
    """
    if translate < 0 or degrees < 0 or not 0 <= scale < 1:
        raise ValueError(
            f"translate and degrees must be ≥ 0 and scale in [0, 1); got {translate=}, {degrees=}, {scale=}"
        )
    angle, factor, horizontal, vertical = 2 * torch.rand(4, len(images), device=images.device, dtype=images.dtype) - 1
    angle, factor = angle * radians(degrees), 1 + scale * factor
    height, width = images.shape[-2:]
    rows = [
        torch.stack([factor * angle.cos(), -factor * angle.sin(), 2 * translate / width * horizontal], 1),
        torch.stack([factor * angle.sin(), factor * angle.cos(), 2 * translate / height * vertical], 1),
    ]
    grid = affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
    return grid_sample(images, grid, align_corners=False)
