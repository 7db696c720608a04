"""Films: pictures or points that change together, as an animated GIF that any viewer plays."""

import io
from collections.abc import Iterable
from math import ceil, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parnassus.report.ink import PALETTE, as_array, write_whole

MOST = 60  # frames; more of them cost space and show no more
MOMENT, REST = 80, 2_000  # milliseconds a frame and the last one stay
CANVAS = 480  # pixels on a side for points


def save_film(frames: object, path: Path, *, columns: int | None = None) -> None:
    """Write PATH.gif from frames (n, count, 1 or 3, height, width) in [0, 1], or points (n, count, at least 2).

    Of a long film evenly spaced frames are kept, the first and the last among them; the last one rests.
    """
    states = as_array(frames)
    if states.ndim not in (3, 5) or not len(states):
        raise ValueError(f"frames must be (n, count, channels, height, width) or (n, count, 2); got {states.shape}")
    kept = states[np.linspace(0, len(states) - 1, min(MOST, len(states))).round().astype(int)]
    drawn = mosaics(kept, columns) if kept.ndim == 5 else clouds(kept)
    write_gif(zip(drawn, [MOMENT] * (len(drawn) - 1) + [REST], strict=True), path)


def write_gif(shown: Iterable[tuple[NDArray[np.uint8], int]], path: Path) -> None:
    """Write PATH.gif from pictures (height, width, 3) and the milliseconds for which each of them stays."""
    from PIL import Image

    kept = [(Image.fromarray(picture).quantize(256), stays) for picture, stays in shown]
    (first, *others), durations = zip(*kept, strict=True)
    buffer = io.BytesIO()
    first.save(
        buffer, format="GIF", save_all=True, append_images=others, duration=list(durations), loop=0, optimize=False
    )
    write_whole(path.with_name(f"{path.name}.gif"), buffer.getvalue())


def mosaics(frames: NDArray[np.float64], columns: int | None) -> NDArray[np.uint8]:
    """Every frame's images side by side on white, enlarged by a whole number so that pixels stay square."""
    length, count, channels, height, width = frames.shape
    across = min(columns or ceil(sqrt(count)), count)
    down = ceil(count / across)
    gap = max(1, height // 14)
    page = np.ones((length, 3, down * (height + gap) - gap, across * (width + gap) - gap))
    for index in range(count):
        top, left = index // across * (height + gap), index % across * (width + gap)
        page[:, :, top : top + height, left : left + width] = np.broadcast_to(
            frames[:, index], (length, channels, height, width)
        )
    larger = max(1, CANVAS // max(page.shape[2:]))
    pixels = (page.clip(0, 1) * 255).round().astype(np.uint8).transpose(0, 2, 3, 1)
    return pixels.repeat(larger, axis=1).repeat(larger, axis=2)


def clouds(frames: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Every frame's points as dots on white, over limits that hold the last frame with room around it."""
    last = frames[-1, :, :2]
    middle, reach = (last.max(0) + last.min(0)) / 2, max(1e-9, 0.75 * float(np.ptp(last, axis=0).max()))
    place = ((frames[:, :, :2] - middle) / reach / 2 + 0.5) * (CANVAS - 1)
    ink = np.array([int(PALETTE[0][i : i + 2], 16) for i in (1, 3, 5)], dtype=np.uint8)
    page = np.full((len(frames), CANVAS, CANVAS, 3), 255, dtype=np.uint8)
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            column = place[..., 0].round().astype(int) + right
            row = CANVAS - 1 - place[..., 1].round().astype(int) + down
            seen = (column >= 0) & (column < CANVAS) & (row >= 0) & (row < CANVAS)
            frame, point = np.nonzero(seen)
            page[frame, row[frame, point], column[frame, point]] = ink
    return page
