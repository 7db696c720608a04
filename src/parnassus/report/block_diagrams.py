"""Block diagrams with arrows, random blocks, and the paths of gradients."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from parnassus.report.style import FAINT, INK, PALETTE, remove_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Position = tuple[float, float]
Arrow = tuple[str, str]

HEIGHT = 0.46  # of a block, in the units of the positions
LETTER_WIDTH = 0.105
OFFSET = 0.15  # between an arrow and the parallel gradient arrow


def draw_blocks(
    ax: "Axes",
    blocks: Mapping[str, Position],
    arrows: Sequence[Arrow],
    *,
    random: Collection[str] = (),
    gradients: Sequence[Arrow] = (),
    blocked: Sequence[Arrow] = (),
) -> None:
    """Draw named blocks at their positions, about two units apart, and arrows between them.

    `random` blocks have round corners. `gradients` are dashed arrows parallel to the others; `blocked` gradients are
    marked with a cross. Names that differ only in trailing spaces are different blocks with the same text.
    """
    unknown = {name for arrow in (*arrows, *gradients, *blocked) for name in arrow} - set(blocks)
    unknown |= set(random) - set(blocks)
    if unknown:
        raise ValueError(f"arrows must connect blocks; got {sorted(unknown)[0]!r}, which is not in {list(blocks)}")
    remove_frame(ax)
    ax.set_aspect("equal")
    for name, position in blocks.items():
        _draw_block(ax, name, position, round_corners=name in random)
    for start, end in arrows:
        _draw_arrow(ax, *_ends(blocks, start, end), colour=INK, style="solid")
    for start, end in gradients:
        _draw_arrow(ax, *_shift_aside(*_ends(blocks, start, end)), colour=PALETTE[1], style="dashed")
    for start, end in blocked:
        tail, head = _shift_aside(*_ends(blocks, start, end))
        _draw_arrow(ax, tail, head, colour=FAINT, style="dashed")
        middle = (tail[0] + head[0]) / 2, (tail[1] + head[1]) / 2
        ax.plot(*middle, marker="x", markersize=9, markeredgewidth=2.2, color=PALETTE[1], zorder=4)
    x = [position[0] + side * (_width(name) / 2 + 0.1) for name, position in blocks.items() for side in (-1, 1)]
    y = [position[1] + side * (HEIGHT / 2 + 0.15) for position in blocks.values() for side in (-1, 1)]
    ax.set(xlim=(min(x), max(x)), ylim=(min(y), max(y)))


def _width(name: str) -> float:
    return max(0.6, LETTER_WIDTH * len(name.strip()) + 0.3)


def _draw_block(ax: "Axes", name: str, position: Position, *, round_corners: bool) -> None:
    from matplotlib.patches import FancyBboxPatch

    width = _width(name)
    style = f"round,pad=0,rounding_size={HEIGHT / 2 if round_corners else 0.06}"
    corner = position[0] - width / 2, position[1] - HEIGHT / 2
    colour = PALETTE[2] if round_corners else PALETTE[0]
    ax.add_patch(FancyBboxPatch(corner, width, HEIGHT, style, facecolor="none", edgecolor=colour, linewidth=1.6))
    ax.text(*position, name.strip(), ha="center", va="center", fontsize=10)


def _ends(blocks: Mapping[str, Position], start: str, end: str) -> tuple[Position, Position]:
    """The ends of the line between two blocks, at their borders."""
    (x0, y0), (x1, y1) = blocks[start], blocks[end]
    return _border((x0, y0), (x1, y1), start), _border((x1, y1), (x0, y0), end)


def _border(centre: Position, target: Position, name: str) -> Position:
    x, y = target[0] - centre[0], target[1] - centre[1]
    fraction_x = (_width(name) / 2 + 0.05) / abs(x) if x else float("inf")
    fraction_y = (HEIGHT / 2 + 0.05) / abs(y) if y else float("inf")
    fraction = min(fraction_x, fraction_y)
    return centre[0] + fraction * x, centre[1] + fraction * y


def _shift_aside(tail: Position, head: Position) -> tuple[Position, Position]:
    """The same line, shifted to its left."""
    x, y = head[0] - tail[0], head[1] - tail[1]
    length = max((x**2 + y**2) ** 0.5, 1e-9)
    shift = -y / length * OFFSET, x / length * OFFSET
    return (tail[0] + shift[0], tail[1] + shift[1]), (head[0] + shift[0], head[1] + shift[1])


def _draw_arrow(ax: "Axes", tail: Position, head: Position, *, colour: str, style: str) -> None:
    properties = {
        "arrowstyle": "-|>",
        "color": colour,
        "linestyle": style,
        "shrinkA": 0,
        "shrinkB": 0,
        "linewidth": 1.3,
    }
    ax.annotate("", head, tail, arrowprops=properties, zorder=2)
