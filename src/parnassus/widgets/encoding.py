"""Tensors as plain values: lists of numbers, and PNG images in data URLs."""

import base64
import io
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import interpolate

if TYPE_CHECKING:
    from numpy.typing import NDArray

PlainValues: TypeAlias = dict[str, Any]
"""Values that JSON can represent: text, numbers, lists, and images as data URLs."""
LEVEL_STEPS = 12
LEVELS_SIZE = 480  # pixels per side


def round_values(values: Tensor, digits: int) -> list[float]:
    """The rounded values of a tensor as a flat list."""
    return [round(value, digits) for value in values.flatten().tolist()]


def list_or_empty(values: Tensor | None) -> list[Any]:
    return [] if values is None else values.tolist()


def encode_image(image: Float[Tensor, "channels height width"]) -> str:
    """An image with values in [0, 1] as a PNG in a data URL; values outside are clipped."""
    pixels = (image.clamp(0, 1) * 255).round().byte().permute(1, 2, 0).numpy()
    return _encode_png(pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels)


def join_images(images: Float[Tensor, "count channels height width"]) -> Float[Tensor, "4 height total_width"]:
    """Images side by side as one, with transparent gaps."""
    count, _, height, width = images.shape
    gap = max(1, width // 10)
    joined = torch.zeros(4, height, count * (width + gap) - gap)
    for index, image in enumerate(images):
        target = joined[:, :, index * (width + gap) : index * (width + gap) + width]
        target[:3], target[3] = image, 1.0
    return joined


def encode_level_lines(levels: Float[Tensor, "rows columns"]) -> str:
    """Contour lines of a function on a grid as a PNG in a data URL.

    The levels are equidistant in the square root of the function, so that contours of a quadratic are evenly spaced.
    """
    size = (LEVELS_SIZE, LEVELS_SIZE)
    fine = interpolate(levels[None, None].double(), size, mode="bicubic", align_corners=True)[0, 0].numpy()
    height = np.sqrt(np.maximum(fine - fine.min(), 0))
    step = np.floor(height / max(float(height.max()), 1e-12) * LEVEL_STEPS)
    is_line = np.zeros_like(step, dtype=bool)
    is_line[1:] |= step[1:] != step[:-1]
    is_line[:, 1:] |= step[:, 1:] != step[:, :-1]
    alpha = np.where(is_line, 130, 4 * (LEVEL_STEPS - step)).astype(np.uint8)[::-1]  # row 0 of an image is its top
    grey = np.full_like(alpha, 128)
    return _encode_png(np.stack([grey, grey, grey, alpha], -1))


def _encode_png(pixels: "NDArray[np.uint8]") -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", compress_level=1)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
