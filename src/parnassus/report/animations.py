"""Animated GIFs of images and of point sets."""

import io
from collections.abc import Iterable
from math import ceil, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parnassus.report.style import PALETTE, as_array, rgb, write_atomically

MAX_FRAMES = 60
FRAME_MS, LAST_FRAME_MS = 80, 2_000  # durations in milliseconds
CANVAS = 480  # pixels per side for points


def save_animation(frames: object, path: Path, *, columns: int | None = None) -> None:
    """Write PATH.gif from frames (n, count, 1 or 3, height, width) in [0, 1], or points (n, count, at least 2).

    A long animation is reduced to evenly spaced frames that include the first and the last.
    """
    states = as_array(frames)
    if states.ndim not in (3, 5) or not len(states):
        raise ValueError(f"frames must be (n, count, channels, height, width) or (n, count, 2); got {states.shape}")
    kept = states[np.linspace(0, len(states) - 1, min(MAX_FRAMES, len(states))).round().astype(int)]
    pages = image_mosaics(kept, columns) if kept.ndim == 5 else scatter_frames(kept)
    write_gif(zip(pages, [FRAME_MS] * (len(pages) - 1) + [LAST_FRAME_MS], strict=True), path)


def write_gif(frames: Iterable[tuple[NDArray[np.uint8], int]], path: Path) -> None:
    """Write PATH.gif from images (height, width, 3), each with its duration in milliseconds."""
    from PIL import Image

    quantized = [(Image.fromarray(image).quantize(256), duration) for image, duration in frames]
    (first, *others), durations = zip(*quantized, strict=True)
    buffer = io.BytesIO()
    first.save(
        buffer, format="GIF", save_all=True, append_images=others, duration=list(durations), loop=0, optimize=False
    )
    write_atomically(path.with_name(f"{path.name}.gif"), buffer.getvalue())


def image_mosaics(frames: NDArray[np.float64], columns: int | None) -> NDArray[np.uint8]:
    """The images of every frame side by side on white, enlarged by an integer factor."""
    length, count, channels, height, width = frames.shape
    columns = min(columns or ceil(sqrt(count)), count)
    rows = ceil(count / columns)
    gap = max(1, height // 14)
    page = np.ones((length, 3, rows * (height + gap) - gap, columns * (width + gap) - gap))
    for index in range(count):
        top, left = index // columns * (height + gap), index % columns * (width + gap)
        page[:, :, top : top + height, left : left + width] = np.broadcast_to(
            frames[:, index], (length, channels, height, width)
        )
    factor = max(1, CANVAS // max(page.shape[2:]))
    pixels = (page.clip(0, 1) * 255).round().astype(np.uint8).transpose(0, 2, 3, 1)
    return pixels.repeat(factor, axis=1).repeat(factor, axis=2)


def scatter_frames(frames: NDArray[np.float64]) -> NDArray[np.uint8]:
    """The points of every frame as dots on white, with limits around the last frame."""
    last = frames[-1, :, :2]
    centre, radius = (last.max(0) + last.min(0)) / 2, max(1e-9, 0.75 * float(np.ptp(last, axis=0).max()))
    position = ((frames[:, :, :2] - centre) / radius / 2 + 0.5) * (CANVAS - 1)
    ink = np.array(rgb(PALETTE[0]), dtype=np.uint8)
    page = np.full((len(frames), CANVAS, CANVAS, 3), 255, dtype=np.uint8)
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            column = position[..., 0].round().astype(int) + right
            row = CANVAS - 1 - position[..., 1].round().astype(int) + down
            is_inside = (column >= 0) & (column < CANVAS) & (row >= 0) & (row < CANVAS)
            frame, point = np.nonzero(is_inside)
            page[frame, row[frame, point], column[frame, point]] = ink
    return page
