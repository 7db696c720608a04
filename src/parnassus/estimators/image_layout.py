"""Layouts of images: grey images without a channel axis and channels last become (count, channels, height, width)."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from parnassus.arrays import ArrayLike, as_tensor


@dataclass(frozen=True)
class ImageLayout:
    """How the axes of a given array map to (count, channels, height, width)."""

    has_channels: bool
    is_channels_last: bool

    @classmethod
    def of(cls, shape: tuple[int, ...]) -> "ImageLayout":
        """The layout of an array of this shape, whose number of channels is 1 or 3."""
        if len(shape) == 3:
            return cls(has_channels=False, is_channels_last=False)
        if len(shape) == 4 and {shape[1], shape[3]} & {1, 3}:
            return cls(has_channels=True, is_channels_last=shape[1] not in (1, 3))
        raise ValueError(
            "images must have the axes (count, height, width), or also 1 or 3 channels before or after these; "
            f"got shape {shape}"
        )

    def to_tensor(self, images: ArrayLike) -> Float[Tensor, "count channels height width"]:
        """Values in [0, 1] in float32; bytes are divided by 255."""
        x = as_tensor(images, "X")
        x = x.float() / 255 if x.dtype == torch.uint8 else x.float()
        if not self.has_channels:
            x = x[:, None]
        elif self.is_channels_last:
            x = x.movedim(3, 1)
        if not bool(((x >= 0) & (x <= 1)).all()):
            raise ValueError(
                "the values of images must lie in [0, 1], or be bytes; "
                f"got {float(x.min()):g} to {float(x.max()):g}: divide by the largest possible value"
            )
        return x

    def to_array(self, images: Float[Tensor, "count channels height width"]) -> NDArray[Any]:
        """Images in the given layout."""
        if not self.has_channels:
            images = images[:, 0]
        elif self.is_channels_last:
            images = images.movedim(1, 3)
        return images.cpu().numpy()
