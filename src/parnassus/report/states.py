"""Graphs of states: where a chain may go next, and how likely (book fig. 18.2)."""

from collections.abc import Mapping, Sequence
from math import atan2, cos, sin
from typing import TYPE_CHECKING

from parnassus.report.ink import FAINT, INK, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Place = tuple[float, float]

WIDE, HIGH = 1.5, 0.86  # of a state, in the units of its place
BEND = 0.14  # of an arrow, as a share of its length, so that there and back lie apart
TURN = 0.2  # between the way to another state and where its arrow leaves the rim


def draw_states(
    ax: "Axes",
    places: Mapping[str, Place],
    moves: Mapping[tuple[str, str], float],
    *,
    notes: Mapping[str, str] | None = None,
    fills: Mapping[str, str] | None = None,
) -> None:
    """Named states at their places, two units apart or more, and an arrow with its probability for every move.

    A note stands below a state's name, a fill behind it. A move from a state to itself is a loop above it; one that has
    probability 1 there is an end, and is drawn with a second rim instead.
    """
    unknown = {name for move in moves for name in move} - set(places)
    if unknown:
        raise ValueError(f"a move needs states at both ends; there is no {sorted(unknown)[0]!r} among {list(places)}")
    plain(ax)
    ax.set_aspect("equal")
    for name, place in places.items():
        rims = (1.0, 0.9) if moves.get((name, name)) == 1 else (1.0,)
        _draw_state(ax, place, rims, (fills or {}).get(name))
        note = (notes or {}).get(name, "")
        ax.text(place[0], place[1] + (0.13 if note else 0), name, ha="center", va="center", fontsize=9.5)
        ax.text(place[0], place[1] - 0.16, note, ha="center", va="center", fontsize=9.5)
    for (start, end), chance in moves.items():
        if start != end:
            _draw_move(ax, places[start], places[end], f"{chance:g}")
        elif chance != 1:
            _draw_loop(ax, places[start], f"{chance:g}")
    across = [place[0] for place in places.values()]
    top = [place[1] + (1.15 if 0 < moves.get((name, name), 0) < 1 else 0.5) for name, place in places.items()]
    low = min(place[1] for place in places.values())
    ax.set(xlim=(min(across) - 0.85, max(across) + 0.85), ylim=(low - 0.6, max(top)))


def _draw_state(ax: "Axes", place: Place, rims: Sequence[float], fill: str | None) -> None:
    from matplotlib.patches import Ellipse

    if fill is not None:
        ax.add_patch(Ellipse(place, WIDE, HIGH, facecolor=fill, edgecolor="none", alpha=0.45))
    for rim in rims:
        ax.add_patch(Ellipse(place, rim * WIDE, rim * HIGH, facecolor="none", edgecolor=INK, linewidth=1.2))


def _draw_move(ax: "Axes", start: Place, end: Place, label: str) -> None:
    from matplotlib.patches import FancyArrowPatch

    across, up = end[0] - start[0], end[1] - start[1]
    ax.add_patch(
        FancyArrowPatch(
            _rim(start, end, -TURN),
            _rim(end, start, TURN),
            arrowstyle="-|>",
            mutation_scale=11,
            connectionstyle=f"arc3,rad={BEND}",
            color=FAINT,
            linewidth=1.4,
            shrinkA=0,
            shrinkB=0,
        )
    )
    aside = BEND / 2 + 0.24 / max((across**2 + up**2) ** 0.5, 1e-9)
    middle = (start[0] + end[0]) / 2 + aside * up, (start[1] + end[1]) / 2 - aside * across
    ax.text(*middle, label, ha="center", va="center", fontsize=9)


def _rim(middle: Place, towards: Place, turn: float) -> Place:
    """Where the way from `middle`, turned a little, meets the rim of its state."""
    angle = atan2(towards[1] - middle[1], towards[0] - middle[0]) + turn
    across, up = cos(angle), sin(angle)
    share = 0.53 / max(((across / WIDE) ** 2 + (up / HIGH) ** 2) ** 0.5, 1e-9)
    return middle[0] + share * across, middle[1] + share * up


def _draw_loop(ax: "Axes", place: Place, label: str) -> None:
    from matplotlib.patches import FancyArrowPatch

    left, right = (place[0] - 0.32, place[1] + 0.42), (place[0] + 0.32, place[1] + 0.42)
    ax.add_patch(
        FancyArrowPatch(
            left,
            right,
            arrowstyle="-|>",
            mutation_scale=11,
            connectionstyle="arc3,rad=-1.3",
            color=FAINT,
            linewidth=1.4,
            shrinkA=0,
            shrinkB=0,
        )
    )
    ax.text(place[0], place[1] + 0.86, label, ha="center", va="bottom", fontsize=9)
