"""Films: as many frames as promised, the right pixels, points where they belong."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from parnassus.report import save_film
from parnassus.report.films import CANVAS, MOMENT, MOST, REST


def frames_of(path: Path) -> list[np.ndarray]:
    found = []
    with Image.open(path) as film:
        for index in range(getattr(film, "n_frames", 1)):
            film.seek(index)
            found.append(np.asarray(film.convert("RGB")))
    return found


def test_a_long_film_keeps_its_ends_and_not_too_many_frames(tmp_path: Path) -> None:
    grey = np.linspace(0, 1, 500)[:, None, None, None, None] * np.ones((1, 1, 1, 4, 4))
    save_film(grey, tmp_path / "fade")
    frames = frames_of(tmp_path / "fade.gif")
    assert len(frames) == MOST
    assert frames[0].max() == 0
    assert frames[-1].min() == 255


def test_colours_and_places_are_kept(tmp_path: Path) -> None:
    images = np.zeros((2, 3, 3, 2, 2))
    images[1, 0, 0] = 1  # red, first of a row
    images[1, 2, 2] = 1  # blue, last of the row
    save_film(images, tmp_path / "row.v2", columns=3)
    last = frames_of(tmp_path / "row.v2.gif")[1]
    side = last.shape[0] // 2
    assert last.shape == (2 * side, 8 * side, 3)  # three images of two pixels and two gaps of one
    assert last[0, 0].tolist() == [255, 0, 0]
    assert last[0, 2 * side].tolist() == [255, 255, 255]
    assert last[-1, -1].tolist() == [0, 0, 255]


def test_points_are_drawn_upwards_and_those_outside_left_out(tmp_path: Path) -> None:
    points = np.array([[[100.0, 100.0], [0.0, 0.0]], [[-1.0, 0.0], [1.0, 1.0]]])
    save_film(points, tmp_path / "points")
    first, last = (frame.min(2) < 200 for frame in frames_of(tmp_path / "points.gif"))
    assert first.sum() == 9
    rows, columns = np.nonzero(last)
    assert len(rows) == 18
    assert rows[columns > CANVAS / 2].mean() < rows[columns < CANVAS / 2].mean()


def test_the_last_frame_rests(tmp_path: Path) -> None:
    save_film(np.random.default_rng(0).random((3, 1, 1, 4, 4)), tmp_path / "rest")
    with Image.open(tmp_path / "rest.gif") as film:
        assert film.info["duration"] == MOMENT
        film.seek(2)
        assert film.info["duration"] == REST


def test_what_is_no_film_is_refused(tmp_path: Path) -> None:
    for shape in ((4, 4), (0, 1, 1, 4, 4)):
        with pytest.raises(ValueError, match=r"frames must be .* got"):
            save_film(np.zeros(shape), tmp_path / "none")
