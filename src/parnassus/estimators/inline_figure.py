"""Figures that notebooks show inline."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from parnassus.report.style import render_svg, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class InlineFigure:
    """A matplotlib figure; a notebook shows it as SVG, whether pyplot has been imported or not.

    >>> from matplotlib.figure import Figure
    >>> InlineFigure(Figure(figsize=(4, 3)))
    InlineFigure(4 × 3 inches; .save(path) writes SVG and PNG)
    """

    figure: "Figure"

    def save(self, path: Path | str) -> None:
        """Write PATH.svg and PATH.png."""
        save_figure(self.figure, Path(path))

    def __repr__(self) -> str:
        width, height = self.figure.get_size_inches()
        return f"InlineFigure({width:g} × {height:g} inches; .save(path) writes SVG and PNG)"

    def _repr_html_(self) -> str:
        return render_svg(self.figure)
