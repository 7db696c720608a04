"""The bar of forces: what raises a prediction and what lowers it, meeting where they balance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parnassus.report.attributions import LESS, MORE, ROUNDING, largest_parts, signed
from parnassus.report.ink import FAINT, INK, as_array, plain, subplots
from parnassus.report.numbers import number
from parnassus.report.words import inches

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE = 8.2
"""Inches of the bar with its names."""
NAME = 8.5
"""Points of a name."""


def force(base: float, parts: object, names: Sequence[str], *, most: int = 10, x_label: str = "") -> "Figure":
    """What pushes up from the left and what pushes down from the right, meeting at the whole; the largest in front.

    A part whose name does not fit into its piece has it below; the smallest beyond `most` are one piece.
    """
    shown = largest_parts(as_array(parts), names, None, most)[::-1]
    whole = base + sum(part for _, part, _ in shown)
    pieces = _pieces(whole, shown)
    scale, margins = _room(whole, pieces)
    below = [[piece for piece in pieces if piece.outside(scale) and piece.sign == sign] for sign in (1, -1)]
    deep = max(map(len, below))
    figure, axes = subplots(size=(WIDE + 0.2, 1.4 + 0.2 * deep + 0.25 * bool(x_label)))
    ax = axes[0, 0]
    for piece in pieces:
        _draw_piece(ax, piece, tip=0.07 / scale, inside=not piece.outside(scale))
    for side in below:
        for level, piece in enumerate(reversed(side)):  # the outermost highest: no line meets another's name
            foot = -0.25 - 0.5 * level
            ax.plot([piece.middle] * 2, [0, foot], color=piece.colour, linewidth=0.9)
            ax.text(piece.middle - piece.sign * 0.04 / scale, foot, piece.label, **piece.aligned, fontsize=NAME)
    ax.plot([base, base], [0, 1.2], color=FAINT, linewidth=1, linestyle=(0, (3, 2)))
    near = abs(base - whole) * scale < 0.5
    aside = {"ha": ("left" if base >= whole else "right") if near else "center", "va": "bottom"}
    ax.text(base, 1.25, f" base {number(base)} ", **aside, fontsize=NAME)
    ax.plot([whole, whole], [0, 1.75], color=INK, linewidth=1.2)
    ax.text(whole, 1.8, number(whole), ha="center", va="bottom", fontsize=10, fontweight="bold")
    for sign, words, colour in ((1, "raises →", MORE), (-1, "← lowers", LESS)):
        if any(piece.sign == sign for piece in pieces):
            where = whole - sign * 0.4 / scale
            ax.text(where, 1.85, words, color=colour, ha="right" if sign > 0 else "left", va="bottom", fontsize=NAME)
    plain(ax)
    ends = [piece.start for piece in pieces] + [piece.end for piece in pieces] + [base, whole]
    ax.set(xlim=(min(ends) - margins[0] / scale, max(ends) + margins[1] / scale), ylim=(-0.1 - 0.5 * deep, 2.45))
    ax.set_xlabel(x_label, labelpad=2)
    return figure


@dataclass(frozen=True)
class _Piece:
    """A part on the bar of forces: where it starts, away from the whole, and where it ends, towards it."""

    label: str
    start: float
    end: float
    sign: int

    @property
    def middle(self) -> float:
        return (self.start + self.end) / 2

    @property
    def colour(self) -> str:
        return MORE if self.sign > 0 else LESS

    @property
    def aligned(self) -> dict[str, str]:
        """Names below go outwards, away from those of the other side."""
        return {"ha": "right" if self.sign > 0 else "left", "va": "center"}

    @property
    def name_width(self) -> float:
        """Of its name."""
        return inches(self.label, NAME)

    def outside(self, scale: float) -> bool:
        """Whether its name needs more room than there is, at so many inches a unit."""
        return self.name_width + 0.2 > abs(self.end - self.start) * scale


def _pieces(whole: float, shown: "list[tuple[str, float, float]]") -> list[_Piece]:
    """Parts that add end at the whole, one behind the other; those that take away begin there."""
    found, reached = [], {1: whole, -1: whole}
    largest = max(abs(whole), *(abs(part) for _, part, _ in shown))
    for name, part, _ in shown:
        if abs(part) > ROUNDING * largest:
            sign = 1 if part > 0 else -1
            found.append(_Piece(f"{name} ({signed(part, largest, 3)})", reached[sign] - part, reached[sign], sign))
            reached[sign] -= part
    return found


def _room(whole: float, pieces: list[_Piece]) -> tuple[float, tuple[float, float]]:
    """Inches a unit, and inches left and right of the bar that names below it need: each depends on the other."""
    ends = [piece.start for piece in pieces] + [whole]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0
    margins = (0.9, 0.9)
    for _ in range(4):
        scale = max(1.0, WIDE - sum(margins)) / span
        out = [piece for piece in pieces if piece.outside(scale)]
        left = [piece.name_width - (piece.middle - low) * scale for piece in out if piece.sign > 0]
        right = [piece.name_width - (high - piece.middle) * scale for piece in out if piece.sign < 0]
        words = 0.95 - (whole - low) * scale, 0.95 - (high - whole) * scale
        margins = max(0.1, words[0], *left) + 0.05, max(0.1, words[1], *right) + 0.05
    return scale, margins


def _draw_piece(ax: "Axes", piece: _Piece, *, tip: float, inside: bool) -> None:
    """An arrow's shaft that begins in a notch and ends in a tip, so that neighbours fit into each other."""
    from matplotlib.patches import Polygon

    tip = piece.sign * min(tip, abs(piece.end - piece.start) / 2)
    corners = [
        (piece.start - tip, 0.0),
        (piece.end - tip, 0.0),
        (piece.end, 0.5),
        (piece.end - tip, 1.0),
        (piece.start - tip, 1.0),
        (piece.start, 0.5),
    ]
    ax.add_patch(Polygon(corners, closed=True, facecolor=piece.colour, edgecolor="white", linewidth=0.8))
    if inside:
        ax.text(piece.middle - tip / 2, 0.5, piece.label, ha="center", va="center", color="white", fontsize=NAME)
