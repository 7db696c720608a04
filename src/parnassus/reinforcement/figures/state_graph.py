"""State-transition graphs of Markov chains (book fig. 18.2)."""

from collections.abc import Mapping, Sequence
from math import atan2, cos, sin
from typing import TYPE_CHECKING

from parnassus.report.style import FAINT, INK, remove_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[float, float]

WIDTH, HEIGHT = 1.5, 0.86  # of a state, in units of its position
BEND = 0.14  # of an arrow, as a fraction of its length, which separates opposite arrows
TURN = 0.2  # angle between the direction of another state and the start of its arrow on the rim


def plot_state_graph(
    ax: "Axes",
    positions: Mapping[str, Point],
    transitions: Mapping[tuple[str, str], float],
    *,
    notes: Mapping[str, str] | None = None,
    fills: Mapping[str, str] | None = None,
) -> None:
    """Plot states at positions at least two units apart, and transitions with probabilities.

    `notes` are written below the names, `fills` are background colours. A self-transition is a loop above the state;
    an absorbing state has a double rim instead.
    """
    unknown = {name for transition in transitions for name in transition} - set(positions)
    if unknown:
        raise ValueError(f"every state needs a position; {sorted(unknown)[0]!r} is not among {list(positions)}")
    remove_frame(ax)
    ax.set_aspect("equal")
    for name, position in positions.items():
        rims = (1.0, 0.9) if transitions.get((name, name)) == 1 else (1.0,)
        _draw_state(ax, position, rims, (fills or {}).get(name))
        note = (notes or {}).get(name, "")
        ax.text(position[0], position[1] + (0.13 if note else 0), name, ha="center", va="center", fontsize=9.5)
        ax.text(position[0], position[1] - 0.16, note, ha="center", va="center", fontsize=9.5)
    for (start, end), probability in transitions.items():
        if start != end:
            _draw_arrow(ax, positions[start], positions[end], f"{probability:g}")
        elif probability != 1:
            _draw_loop(ax, positions[start], f"{probability:g}")
    across = [x for x, _ in positions.values()]
    has_loop = {name: 0 < transitions.get((name, name), 0) < 1 for name in positions}
    top = [y + (1.15 if has_loop[name] else 0.5) for name, (_, y) in positions.items()]
    low = min(y for _, y in positions.values())
    ax.set(xlim=(min(across) - 0.85, max(across) + 0.85), ylim=(low - 0.6, max(top)))


def _draw_state(ax: "Axes", position: Point, rims: Sequence[float], fill: str | None) -> None:
    from matplotlib.patches import Ellipse

    if fill is not None:
        ax.add_patch(Ellipse(position, WIDTH, HEIGHT, facecolor=fill, edgecolor="none", alpha=0.45))
    for rim in rims:
        ax.add_patch(Ellipse(position, rim * WIDTH, rim * HEIGHT, facecolor="none", edgecolor=INK, linewidth=1.2))


def _draw_arrow(ax: "Axes", start: Point, end: Point, label: str) -> None:
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
    centre = (start[0] + end[0]) / 2 + aside * up, (start[1] + end[1]) / 2 - aside * across
    ax.text(*centre, label, ha="center", va="center", fontsize=9)


def _rim(centre: Point, towards: Point, turn: float) -> Point:
    """Where the ray from `centre` towards a point, turned by an angle, meets the rim of the state."""
    angle = atan2(towards[1] - centre[1], towards[0] - centre[0]) + turn
    across, up = cos(angle), sin(angle)
    radius = 0.53 / max(((across / WIDTH) ** 2 + (up / HEIGHT) ** 2) ** 0.5, 1e-9)
    return centre[0] + radius * across, centre[1] + radius * up


def _draw_loop(ax: "Axes", position: Point, label: str) -> None:
    from matplotlib.patches import FancyArrowPatch

    left, right = (position[0] - 0.32, position[1] + 0.42), (position[0] + 0.32, position[1] + 0.42)
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
    ax.text(position[0], position[1] + 0.86, label, ha="center", va="bottom", fontsize=9)
