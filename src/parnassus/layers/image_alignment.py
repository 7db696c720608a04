"""Align images with the training images of a classifier: same size and position of the foreground (book sec. 1.4).

A dense network is not translation or scale invariant. MNIST digits are centred at their centre of mass, the smaller UCI
digits fill their frame; `ImageAlignment.fit` estimates size and position from a set of images.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from parnassus.arrays import accepts_arrays

FOREGROUND_THRESHOLD = 0.3
"""A pixel belongs to the foreground if it exceeds this fraction of the image's maximum."""

Anchor: TypeAlias = Callable[[Tensor], Tensor]


def centre_of_mass(images: Float[Tensor, "batch 1 height width"]) -> Float[Tensor, "batch 2"]:
    """The centre of mass (x, y) of the pixel values, in pixels."""
    mass = images.sum((1, 2, 3)).clamp(min=torch.finfo(images.dtype).tiny)
    x, y = (torch.arange(size, dtype=images.dtype, device=images.device) for size in images.shape[:1:-1])
    return torch.stack([images.sum((1, 2)) @ x, images.sum((1, 3)) @ y], 1) / mass[:, None]


def bounding_box_centre(images: Float[Tensor, "batch 1 height width"]) -> Float[Tensor, "batch 2"]:
    """The centre (x, y) of the foreground's bounding box, in pixels."""
    first, last = _bounding_box(images)
    return (first + last) / 2


def longest_side(images: Float[Tensor, "batch 1 height width"]) -> Float[Tensor, " batch"]:
    """The longer side of the foreground's bounding box in pixels; for an empty image, of the image."""
    first, last = _bounding_box(images)
    return (last - first + 1).amax(1)


@dataclass(frozen=True)
class ImageAlignment:
    """Common position of an anchor point of the foregrounds, and the longest side of their bounding boxes."""

    anchor: Anchor
    position: Float[Tensor, "2"]
    length: float

    @classmethod
    @accepts_arrays
    def fit(cls, images: Float[Tensor, "count 1 height width"]) -> "ImageAlignment":
        """The anchor is the centre of mass or of the bounding box, whichever varies less over the images."""
        anchors = (centre_of_mass, bounding_box_centre)
        anchor = min(anchors, key=lambda each: float(each(images).var(0, correction=0).sum()))
        return cls(anchor, anchor(images).mean(0), float(longest_side(images).median()))

    @accepts_arrays
    def transform(self, images: Float[Tensor, "batch 1 height width"]) -> Float[Tensor, "batch 1 height width"]:
        """The images with foregrounds scaled to `length` and shifted to `position`, by bilinear interpolation."""
        size = images.new_tensor(images.shape[:1:-1])
        factor = (longest_side(images) / self.length)[:, None]
        source, target = ((2 * point + 1) / size - 1 for point in (self.anchor(images), self.position))
        theta = torch.cat([torch.diag_embed(factor.expand(-1, 2)), (source - factor * target)[..., None]], 2)
        return grid_sample(images, affine_grid(theta, list(images.shape), align_corners=False), align_corners=False)


def _bounding_box(images: Tensor) -> tuple[Tensor, Tensor]:
    """The first and the last column and row (x, y) of the foreground."""
    foreground = (images > FOREGROUND_THRESHOLD * images.amax((1, 2, 3), keepdim=True))[:, 0]
    ends = [_first_and_last(foreground.any(axis)) for axis in (1, 2)]
    first, last = (torch.stack(side, 1).to(images.dtype) for side in zip(*ends, strict=True))
    return first, last


def _first_and_last(occupied: Bool[Tensor, "batch positions"]) -> tuple[Tensor, Tensor]:
    as_integers = occupied.to(torch.uint8)
    return as_integers.argmax(1), occupied.shape[1] - 1 - as_integers.flip(1).argmax(1)
