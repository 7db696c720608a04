"""A diagram has a circle for every unit and a line for every weight."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from parnassus.report import draw_network, network_diagram, subplots


def circles(figure: Figure) -> list[Circle]:
    return [patch for patch in figure.axes[0].patches if isinstance(patch, Circle)]


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts if text.get_text()]


@pytest.mark.parametrize("sizes", [(4, 1), (2, 5, 1), (4, 4, 3), (3, 12, 7, 2)])
def test_all_units_and_weights_are_drawn(sizes: Sequence[int]) -> None:
    figure = network_diagram(sizes)
    assert len(circles(figure)) == sum(sizes)
    weights = sum(left * right for left, right in pairwise(sizes))
    assert len(figure.axes[0].lines) == weights


def test_lines_connect_units_of_neighbouring_layers() -> None:
    figure = network_diagram((2, 5, 1))
    centres = [circle.center for circle in circles(figure)]
    columns = sorted({centre[0] for centre in centres})
    for line in figure.axes[0].lines:
        (x0, y0), (x1, y1) = np.asarray(line.get_xydata()).tolist()
        assert (x0, y0) in centres
        assert (x1, y1) in centres
        assert columns.index(x1) - columns.index(x0) == 1


def test_layers_are_named_with_their_size() -> None:
    assert labels(network_diagram((2, 5, 4, 1))) == ["input\n2", "hidden\n5", "hidden\n4", "output\n1"]


def test_units_can_have_names() -> None:
    assert labels(network_diagram((2, 1), units=[["x₁", "x₂"], ["o"]]))[:3] == ["x₁", "x₂", "input\n2"]


def test_large_layers_are_shortened() -> None:
    figure = network_diagram((784, 10))
    assert len(circles(figure)) == 11 + 10
    assert "⋮" in labels(figure)
    assert "input\n784" in labels(figure)


def test_circles_do_not_overlap() -> None:
    centres = [circle.center for circle in circles(network_diagram((30, 12, 13, 1)))]
    nearest = min(
        ((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2) ** 0.5 for i, a in enumerate(centres) for b in centres[i + 1 :]
    )
    assert nearest >= 1


def test_invalid_networks_raise_value_error() -> None:
    _, axes = subplots()
    with pytest.raises(ValueError, match=r"at least two layers of at least one unit; got sizes=\(3,\)"):
        draw_network(axes[0, 0], (3,))
    with pytest.raises(ValueError, match=r"got sizes=\(3, 0\)"):
        draw_network(axes[0, 0], (3, 0))
    with pytest.raises(ValueError, match="got 1 labels for 2 units"):
        draw_network(axes[0, 0], (2, 1), units=[["x"]])
