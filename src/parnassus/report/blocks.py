"""Block diagrams: what flows into what, where chance comes in, and where gradients can go back."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from parnassus.report.ink import FAINT, INK, PALETTE, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Place = tuple[float, float]
Arrow = tuple[str, str]

HIGH = 0.46  # of a block, in the units of its place
LETTER = 0.105  # width of a letter
ASIDE = 0.15  # between an arrow and the gradient that goes back beside it


def draw_blocks(
    ax: "Axes",
    blocks: Mapping[str, Place],
    arrows: Sequence[Arrow],
    *,
    random: Collection[str] = (),
    gradients: Sequence[Arrow] = (),
    blocked: Sequence[Arrow] = (),
) -> None:
    """Named blocks at their places, about two units apart, and arrows from block to block.

    `random` blocks are round: their value is drawn. `gradients` go back from block to block, dashed, beside the arrows;
    those `blocked` end in a cross. A name that begins as another but for spaces at its end is another block with the
    same words.
    """
    unknown = {name for arrow in (*arrows, *gradients, *blocked) for name in arrow} - set(blocks)
    unknown |= set(random) - set(blocks)
    if unknown:
        raise ValueError(f"an arrow needs blocks at both ends; there is no {sorted(unknown)[0]!r} among {list(blocks)}")
    plain(ax)
    ax.set_aspect("equal")
    for name, place in blocks.items():
        _draw_block(ax, name, place, round_corners=name in random)
    for start, end in arrows:
        _draw_arrow(ax, *_ends(blocks, start, end), colour=INK, style="solid")
    for start, end in gradients:
        _draw_arrow(ax, *_beside(*_ends(blocks, start, end)), colour=PALETTE[1], style="dashed")
    for start, end in blocked:
        tail, head = _beside(*_ends(blocks, start, end))
        _draw_arrow(ax, tail, head, colour=FAINT, style="dashed")
        middle = (tail[0] + head[0]) / 2, (tail[1] + head[1]) / 2
        ax.plot(*middle, marker="x", markersize=9, markeredgewidth=2.2, color=PALETTE[1], zorder=4)
    across = [place[0] + side * (_width(name) / 2 + 0.1) for name, place in blocks.items() for side in (-1, 1)]
    up = [place[1] + side * (HIGH / 2 + 0.15) for place in blocks.values() for side in (-1, 1)]
    ax.set(xlim=(min(across), max(across)), ylim=(min(up), max(up)))


def _width(name: str) -> float:
    return max(0.6, LETTER * len(name.strip()) + 0.3)


def _draw_block(ax: "Axes", name: str, place: Place, *, round_corners: bool) -> None:
    from matplotlib.patches import FancyBboxPatch

    wide = _width(name)
    style = f"round,pad=0,rounding_size={HIGH / 2 if round_corners else 0.06}"
    corner = place[0] - wide / 2, place[1] - HIGH / 2
    colour = PALETTE[2] if round_corners else PALETTE[0]
    ax.add_patch(FancyBboxPatch(corner, wide, HIGH, style, facecolor="none", edgecolor=colour, linewidth=1.6))
    ax.text(*place, name.strip(), ha="center", va="center", fontsize=10)


def _ends(blocks: Mapping[str, Place], start: str, end: str) -> tuple[Place, Place]:
    """Where the line between two middles leaves the first block and meets the second."""
    (x0, y0), (x1, y1) = blocks[start], blocks[end]
    return _edge((x0, y0), (x1, y1), start), _edge((x1, y1), (x0, y0), end)


def _edge(middle: Place, towards: Place, name: str) -> Place:
    across, up = towards[0] - middle[0], towards[1] - middle[1]
    reach_across = (_width(name) / 2 + 0.05) / abs(across) if across else float("inf")
    reach_up = (HIGH / 2 + 0.05) / abs(up) if up else float("inf")
    share = min(reach_across, reach_up)
    return middle[0] + share * across, middle[1] + share * up


def _beside(tail: Place, head: Place) -> tuple[Place, Place]:
    """The same way a little to its left, so that it does not lie on the arrow it goes against."""
    across, up = head[0] - tail[0], head[1] - tail[1]
    length = max((across**2 + up**2) ** 0.5, 1e-9)
    shift = -up / length * ASIDE, across / length * ASIDE
    return (tail[0] + shift[0], tail[1] + shift[1]), (head[0] + shift[0], head[1] + shift[1])


def _draw_arrow(ax: "Axes", tail: Place, head: Place, *, colour: str, style: str) -> None:
    drawn = {"arrowstyle": "-|>", "color": colour, "linestyle": style, "shrinkA": 0, "shrinkB": 0, "linewidth": 1.3}
    ax.annotate("", head, tail, arrowprops=drawn, zorder=2)
