"""Maps of cells: a number, a colour and an arrow in each, walls between."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from parnassus.report.ink import DIVERGING, FAINT, as_array, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LIGHT, DARK = "#f8f8f8", "#111111"  # ink on dark and on light cells, whatever the page


def draw_grid(
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
    """Values (rows, columns) as colours about zero, up to `limit` either way; NaN is a wall.

    `letters` and `arrows` are drawn into the cells, a string a row; a letter goes before an arrow, a dot draws nothing.
    """
    cells = as_array(values)
    if cells.ndim != 2 or any(len(rows) not in (0, len(cells)) for rows in (letters, arrows)):
        raise ValueError(f"need values (rows, columns) and a string for each row; got {cells.shape}")
    from matplotlib.patches import Rectangle

    plain(ax)
    ax.set_aspect("equal")
    most = limit if limit is not None else float(np.nanmax(np.abs(cells))) or 1.0
    picture = ax.imshow(np.ma.masked_invalid(cells), cmap=DIVERGING.removesuffix("_r"), vmin=-most, vmax=most)
    for (row, column), value in np.ndenumerate(cells):
        letter = letters[row][column] if letters else " "
        arrow = arrows[row][column] if arrows else " "
        shown = letter if letter not in " .#" else arrow.strip("#.")
        if np.isnan(value):
            ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=FAINT, edgecolor="none"))
            ink = LIGHT
        else:
            red, green, blue, _ = picture.cmap(float((value + most) / (2 * most)))
            ink = LIGHT if 0.3 * red + 0.6 * green + 0.1 * blue < 0.55 else DARK
        below = numbers and not np.isnan(value)
        lines = [shown] * bool(shown.strip()) + [f"{value:.{digits}f}"] * below
        ax.text(column, row, "\n".join(lines), ha="center", va="center", color=ink, fontsize=size, linespacing=1.3)
