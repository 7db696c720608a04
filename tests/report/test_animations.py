"""Animations have the expected frames, pixels and points."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from parnassus.report import save_animation
from parnassus.report.animations import CANVAS, FRAME_MS, LAST_FRAME_MS, MAX_FRAMES


def read_frames(path: Path) -> list[np.ndarray]:
    frames = []
    with Image.open(path) as animation:
        for index in range(getattr(animation, "n_frames", 1)):
            animation.seek(index)
            frames.append(np.asarray(animation.convert("RGB")))
    return frames


def test_long_animations_keep_both_ends_and_limit_frames(tmp_path: Path) -> None:
    fading = np.linspace(0, 1, 500)[:, None, None, None, None] * np.ones((1, 1, 1, 4, 4))
    save_animation(fading, tmp_path / "fade")
    frames = read_frames(tmp_path / "fade.gif")
    assert len(frames) == MAX_FRAMES
    assert frames[0].max() == 0
    assert frames[-1].min() == 255


def test_colours_and_positions_are_preserved(tmp_path: Path) -> None:
    images = np.zeros((2, 3, 3, 2, 2))
    images[1, 0, 0] = 1  # red, first of a row
    images[1, 2, 2] = 1  # blue, last of the row
    save_animation(images, tmp_path / "row.v2", columns=3)
    last = read_frames(tmp_path / "row.v2.gif")[1]
    side = last.shape[0] // 2
    assert last.shape == (2 * side, 8 * side, 3)  # three images of two pixels and two gaps of one
    assert last[0, 0].tolist() == [255, 0, 0]
    assert last[0, 2 * side].tolist() == [255, 255, 255]
    assert last[-1, -1].tolist() == [0, 0, 255]


def test_points_are_drawn_with_y_upwards_and_clipped(tmp_path: Path) -> None:
    points = np.array([[[100.0, 100.0], [0.0, 0.0]], [[-1.0, 0.0], [1.0, 1.0]]])
    save_animation(points, tmp_path / "points")
    first, last = (frame.min(2) < 200 for frame in read_frames(tmp_path / "points.gif"))
    assert first.sum() == 9
    rows, columns = np.nonzero(last)
    assert len(rows) == 18
    assert rows[columns > CANVAS / 2].mean() < rows[columns < CANVAS / 2].mean()


def test_last_frame_has_a_longer_duration(tmp_path: Path) -> None:
    save_animation(np.random.default_rng(0).random((3, 1, 1, 4, 4)), tmp_path / "rest")
    with Image.open(tmp_path / "rest.gif") as animation:
        assert animation.info["duration"] == FRAME_MS
        animation.seek(2)
        assert animation.info["duration"] == LAST_FRAME_MS


def test_invalid_shapes_raise_value_error(tmp_path: Path) -> None:
    for shape in ((4, 4), (0, 1, 1, 4, 4)):
        with pytest.raises(ValueError, match=r"frames must be .* got"):
            save_animation(np.zeros(shape), tmp_path / "none")
