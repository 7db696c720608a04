"""Pictures placed as those a network was trained on: as large, and around the same point (book sec. 1.4).

A dense network knows each pixel by its place: a figure drawn smaller or further left is new to it. MNIST put its
digits around their centre of mass, the smaller digits of UCI fill their frame; `Placement.fit` finds out which.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

INK = 0.3
"""A pixel belongs to the figure from this share of the picture's brightest one on."""

Anchor: TypeAlias = Callable[[Tensor], Tensor]


def centre_of_mass(images: Float[Tensor, "batch 1 height width"]) -> Float[Tensor, "batch 2"]:
    """The mean place (x, y) of the ink, in pixels from the first."""
    mass = images.sum((1, 2, 3)).clamp(min=torch.finfo(images.dtype).tiny)
    places = [torch.arange(size, dtype=images.dtype, device=images.device) for size in images.shape[:1:-1]]
    return torch.stack([images.sum((1, 2)) @ places[0], images.sum((1, 3)) @ places[1]], 1) / mass[:, None]


def middle(images: Float[Tensor, "batch 1 height width"]) -> Float[Tensor, "batch 2"]:
    """The middle (x, y) of the figure's frame."""
    first, last = _frame(images)
    return (first + last) / 2


def longest_side(images: Float[Tensor, "batch 1 height width"]) -> Float[Tensor, " batch"]:
    """The longer of the figure's width and height, in pixels; of an empty picture, its own."""
    first, last = _frame(images)
    return (last - first + 1).amax(1)


@dataclass(frozen=True)
class Placement:
    """Where a set of pictures has its figures: the anchor they share, where it lies, their longest side."""

    anchor: Anchor
    place: Float[Tensor, "2"]
    side: float

    @classmethod
    def fit(cls, images: Float[Tensor, "count 1 height width"]) -> "Placement":
        """Centre of mass or middle of the frame, whichever moves less from picture to picture."""
        anchor = min((centre_of_mass, middle), key=lambda each: float(each(images).var(0, correction=0).sum()))
        return cls(anchor, anchor(images).mean(0), float(longest_side(images).median()))

    def apply(self, images: Float[Tensor, "batch 1 height width"]) -> Float[Tensor, "batch 1 height width"]:
        """The same figures scaled to `side` and moved to `place`, between pixels by linear interpolation."""
        size = images.new_tensor(images.shape[:1:-1])
        factor = (longest_side(images) / self.side)[:, None]
        here, there = ((2 * point + 1) / size - 1 for point in (self.anchor(images), self.place))
        theta = torch.cat([torch.diag_embed(factor.expand(-1, 2)), (here - factor * there)[..., None]], 2)
        return grid_sample(images, affine_grid(theta, list(images.shape), align_corners=False), align_corners=False)


def _frame(images: Tensor) -> tuple[Tensor, Tensor]:
    """The first and the last column and row (x, y) with ink in them."""
    ink = (images > INK * images.amax((1, 2, 3), keepdim=True))[:, 0]
    ends = [_ends(ink.any(axis)) for axis in (1, 2)]
    first, last = (torch.stack(side, 1).to(images.dtype) for side in zip(*ends, strict=True))
    return first, last


def _ends(taken: Bool[Tensor, "batch places"]) -> tuple[Tensor, Tensor]:
    taken_as_numbers = taken.to(torch.uint8)
    return taken_as_numbers.argmax(1), taken.shape[1] - 1 - taken_as_numbers.flip(1).argmax(1)
