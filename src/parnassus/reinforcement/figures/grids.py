"""Grid worlds with a value, a colour and an arrow in each cell."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from parnassus.report.style import DIVERGING, FAINT, as_array, remove_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LIGHT, DARK = "#f8f8f8", "#111111"  # text on dark and on light cells, independent of the theme


def plot_grid(
    ax: "Axes",
    values: object,
    *,
    limit: float | None = None,
    letters: Sequence[str] = (),
    arrows: Sequence[str] = (),
    numbers: bool = True,
    digits: int = 2,
    size: float = 8.0,
) -> None:
    """Plot values (rows, columns) on a diverging colour scale from −limit to limit; NaN is a wall.

    `letters` and `arrows` have one string per row; a letter takes precedence over an arrow, a dot is not drawn.
    """
    cells = as_array(values)
    if cells.ndim != 2 or any(len(rows) not in (0, len(cells)) for rows in (letters, arrows)):
        raise ValueError(f"values must have shape (rows, columns), with one string per row; got shape {cells.shape}")
    from matplotlib.patches import Rectangle

    remove_frame(ax)
    ax.set_aspect("equal")
    largest = limit if limit is not None else float(np.nanmax(np.abs(cells))) or 1.0
    image = ax.imshow(np.ma.masked_invalid(cells), cmap=DIVERGING.removesuffix("_r"), vmin=-largest, vmax=largest)
    for (row, column), value in np.ndenumerate(cells):
        letter = letters[row][column] if letters else " "
        arrow = arrows[row][column] if arrows else " "
        symbol = letter if letter not in " .#" else arrow.strip("#.")
        if np.isnan(value):
            ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=FAINT, edgecolor="none"))
            colour = LIGHT
        else:
            red, green, blue, _ = image.cmap(float((value + largest) / (2 * largest)))
            colour = LIGHT if 0.3 * red + 0.6 * green + 0.1 * blue < 0.55 else DARK
        has_number = numbers and not np.isnan(value)
        lines = [symbol] * bool(symbol.strip()) + [f"{value:.{digits}f}"] * has_number
        ax.text(column, row, "\n".join(lines), ha="center", va="center", color=colour, fontsize=size, linespacing=1.3)
