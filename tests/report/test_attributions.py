"""Pictures of parts: bars that end where they should, sizes that must match."""

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from parnassus.report.attributions import dependence, over_images, swarm, waterfall


def bars(ax: Axes) -> list[Rectangle]:
    return [patch for patch in ax.patches if isinstance(patch, Rectangle)]


def test_a_waterfall_ends_at_the_sum() -> None:
    parts = torch.tensor([3.0, -1.0, 0.5])
    (ax,) = waterfall(10.0, parts, ["a", "b", "c"]).axes
    ends = sorted(bar.get_x() + bar.get_width() for bar in bars(ax))
    assert ends[-1] == pytest.approx(12.5)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["c", "b", "a"]
    assert {"10", "12.5", "+3", "-1"} <= {text.get_text() for text in ax.texts}


def test_small_parts_become_one_bar() -> None:
    (ax,) = waterfall(0.0, np.arange(1.0, 21.0), [str(n) for n in range(20)], errors=np.ones(20), most=5).axes
    assert ax.get_yticklabels()[0].get_text() == "15 others"
    assert sum(bar.get_width() for bar in bars(ax)) == pytest.approx(210.0)


def test_a_swarm_has_a_dot_for_each_row_and_the_weightiest_on_top() -> None:
    parts = np.stack([np.linspace(-1, 1, 30), np.linspace(-5, 5, 30)], 1)
    ax = swarm(parts, parts, ["small", "large"]).axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["small", "large"]
    assert [len(np.asarray(dots.get_offsets())) for dots in ax.collections] == [30, 30]


def test_dependence_and_images_are_drawn() -> None:
    x = np.linspace(0, 1, 9)
    assert dependence(x, x, x, name="x", other_name="z").axes[0].get_xlabel() == "x"
    assert len(over_images(torch.rand(3, 4, 4), torch.randn(3, 4, 4), ["a", "b", "c"]).axes) == 6


def test_sizes_that_do_not_match_get_a_sentence() -> None:
    with pytest.raises(ValueError, match="2 names for 3 parts"):
        waterfall(0.0, torch.ones(3), ["a", "b"])
    with pytest.raises(ValueError, match="must match"):
        swarm(torch.ones(3, 2), torch.ones(3, 3), ["a", "b"])
    with pytest.raises(ValueError, match="must match"):
        over_images(torch.ones(2, 4, 4), torch.ones(2, 4, 4), ["a"])
