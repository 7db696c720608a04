"""Force plots: arrows meet at the prediction, labels do not overlap."""

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from parnassus.shapley.figures.force import plot_force

NAMES = [f"a rather long name {number}" for number in range(12)]


def arrow_coordinates(ax: Axes) -> list[np.ndarray]:
    return [np.asarray(patch.get_xy())[:, 0] for patch in ax.patches if isinstance(patch, Polygon)]


def test_positive_arrows_end_and_negative_arrows_begin_at_the_prediction() -> None:
    (ax,) = plot_force(10.0, torch.tensor([3.0, -1.0, 0.5, 0.0]), ["a", "b", "c", "d"]).axes
    a, b, c = arrow_coordinates(ax)  # the largest first; zero attributions have no arrow
    assert a.max() == pytest.approx(12.5)
    assert b.min() == pytest.approx(12.5)
    assert c.max() == pytest.approx(9.5)
    texts = {text.get_text().strip() for text in ax.texts}
    assert {"12.5", "base 10", "a (+3)", "b (-1)", "raises →", "← lowers"} <= texts


def test_small_attributions_become_one_arrow() -> None:
    (ax,) = plot_force(0.0, np.arange(1.0, 21.0), [str(n) for n in range(20)], max_display=5).axes
    assert len(arrow_coordinates(ax)) == 6
    assert "15 others (+120)" in {text.get_text() for text in ax.texts}


def label_boxes(figure: Figure) -> list[tuple[str, float, float, float, float]]:
    FigureCanvasAgg(figure).draw()
    boxes = []
    for text in figure.axes[0].texts:
        box = text.get_window_extent()
        boxes.append((text.get_text(), box.x0, box.y0, box.x1, box.y1))
    return boxes


@pytest.mark.parametrize("seed", range(6))
def test_labels_do_not_overlap_or_leave_the_figure(seed: int) -> None:
    generator = np.random.default_rng(seed)
    parts = generator.standard_normal(12) ** 3 * 10.0 ** generator.integers(-3, 4)
    figure = plot_force(float(generator.standard_normal()), parts, NAMES, max_display=8)
    boxes = label_boxes(figure)
    for index, (text, left, low, right, high) in enumerate(boxes):
        assert left > -2, text
        assert right < figure.bbox.width + 2, text
        for other, other_left, other_low, other_right, other_high in boxes[index + 1 :]:
            beside = right <= other_left + 1 or other_right <= left + 1
            above = high <= other_low + 1 or other_high <= low + 1
            assert beside or above, f"{text} overlaps {other}"


def test_zero_attributions_have_no_arrows() -> None:
    (ax,) = plot_force(1.0, [0.0, 0.0], ["a", "b"]).axes
    assert not arrow_coordinates(ax)
    with pytest.raises(ValueError, match="1 names for 2 attributions"):
        plot_force(0.0, [1.0, 2.0], ["a"])
