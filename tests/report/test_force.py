"""The bar of forces: pieces meet at the whole, names do not lie upon each other."""

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from parnassus.report.force import force

NAMES = [f"a rather long name {number}" for number in range(12)]


def pieces(ax: Axes) -> list[np.ndarray]:
    return [np.asarray(patch.get_xy())[:, 0] for patch in ax.patches if isinstance(patch, Polygon)]


def test_what_raises_ends_and_what_lowers_begins_at_the_whole() -> None:
    (ax,) = force(10.0, torch.tensor([3.0, -1.0, 0.5, 0.0]), ["a", "b", "c", "d"]).axes
    a, b, c = pieces(ax)  # the largest first; who has no part has no piece
    assert a.max() == pytest.approx(12.5)
    assert b.min() == pytest.approx(12.5)
    assert c.max() == pytest.approx(9.5)
    texts = {text.get_text().strip() for text in ax.texts}
    assert {"12.5", "base 10", "a (+3)", "b (-1)", "raises →", "← lowers"} <= texts


def test_small_parts_become_one_piece() -> None:
    (ax,) = force(0.0, np.arange(1.0, 21.0), [str(n) for n in range(20)], most=5).axes
    assert len(pieces(ax)) == 6
    assert "15 others (+120)" in {text.get_text() for text in ax.texts}


def boxes(figure: Figure) -> list[tuple[str, float, float, float, float]]:
    FigureCanvasAgg(figure).draw()
    found = []
    for text in figure.axes[0].texts:
        box = text.get_window_extent()
        found.append((text.get_text(), box.x0, box.y0, box.x1, box.y1))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_names_keep_apart_and_inside_the_picture(seed: int) -> None:
    source = np.random.default_rng(seed)
    parts = source.standard_normal(12) ** 3 * 10.0 ** source.integers(-3, 4)
    figure = force(float(source.standard_normal()), parts, NAMES, most=8)
    places = boxes(figure)
    for index, (text, left, low, right, high) in enumerate(places):
        assert left > -2, text
        assert right < figure.bbox.width + 2, text
        for other, other_left, other_low, other_right, other_high in places[index + 1 :]:
            beside = right <= other_left + 1 or other_right <= left + 1
            above = high <= other_low + 1 or other_high <= low + 1
            assert beside or above, f"{text} lies on {other}"


def test_nothing_to_tell_is_drawn_too() -> None:
    (ax,) = force(1.0, [0.0, 0.0], ["a", "b"]).axes
    assert not pieces(ax)
    with pytest.raises(ValueError, match="1 names for 2 parts"):
        force(0.0, [1.0, 2.0], ["a"])
