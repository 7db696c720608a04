"""A map of cells: numbers, arrows and walls where they belong."""

import pytest
import torch
from matplotlib.patches import Rectangle

from parnassus.reinforcement.figures.grids import plot_grid
from parnassus.report.style import subplots

VALUES = torch.tensor([[0.5, torch.nan, -1.0], [0.25, 0.0, torch.nan]])


def test_cells_have_their_words_and_walls() -> None:
    _, axes = subplots()
    plot_grid(axes[0, 0], VALUES, letters=["..G", "..C"], arrows=["→#.", "↑←."])
    walls = [patch.get_xy() for patch in axes[0, 0].patches if isinstance(patch, Rectangle)]
    assert walls == [(0.5, -0.5), (1.5, 0.5)]
    words = {text.get_position(): text.get_text() for text in axes[0, 0].texts}
    assert words == {
        (0, 0): "→\n0.50",
        (1, 0): "",
        (2, 0): "G\n-1.00",
        (0, 1): "↑\n0.25",
        (1, 1): "←\n0.00",
        (2, 1): "C",
    }


def test_colours_are_alike_on_both_sides_of_zero() -> None:
    _, axes = subplots()
    plot_grid(axes[0, 0], VALUES, numbers=False)
    assert axes[0, 0].images[0].get_clim() == (-1.0, 1.0)
    plot_grid(axes[0, 0], VALUES, limit=3.0)
    assert axes[0, 0].images[1].get_clim() == (-3.0, 3.0)
    with pytest.raises(ValueError, match="with one string per row"):
        plot_grid(axes[0, 0], VALUES, letters=["..."])
