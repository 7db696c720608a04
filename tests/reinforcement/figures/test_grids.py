"""Grid plots: values, arrows, walls and colour limits."""

import pytest
import torch
from matplotlib.patches import Rectangle

from parnassus.reinforcement.figures.grids import plot_grid
from parnassus.report.style import subplots

VALUES = torch.tensor([[0.5, torch.nan, -1.0], [0.25, 0.0, torch.nan]])


def test_plot_grid_draws_texts_and_walls() -> None:
    _, axes = subplots()
    plot_grid(axes[0, 0], VALUES, letters=["..G", "..C"], arrows=["→#.", "↑←."])
    walls = [patch.get_xy() for patch in axes[0, 0].patches if isinstance(patch, Rectangle)]
    assert walls == [(0.5, -0.5), (1.5, 0.5)]
    texts = {text.get_position(): text.get_text() for text in axes[0, 0].texts}
    assert texts == {
        (0, 0): "→\n0.50",
        (1, 0): "",
        (2, 0): "G\n-1.00",
        (0, 1): "↑\n0.25",
        (1, 1): "←\n0.00",
        (2, 1): "C",
    }


def test_colour_limits_are_symmetric() -> None:
    _, axes = subplots()
    plot_grid(axes[0, 0], VALUES, numbers=False)
    assert axes[0, 0].images[0].get_clim() == (-1.0, 1.0)
    plot_grid(axes[0, 0], VALUES, limit=3.0)
    assert axes[0, 0].images[1].get_clim() == (-3.0, 3.0)
    with pytest.raises(ValueError, match="with one string per row"):
        plot_grid(axes[0, 0], VALUES, letters=["..."])
