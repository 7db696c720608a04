"""Drawings of networks: units as circles, one column a layer, a line for each weight."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from parnassus.report.ink import FAINT, INK, PALETTE, plain, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 12
"""Of a layer with more units, the first and the last are drawn, with dots between them."""
APART = 2.2  # between two columns, in distances between two units

Place = tuple[float, float]


def network_diagram(sizes: Sequence[int], *, units: Sequence[Sequence[str]] = ()) -> "Figure":
    """The fully connected network with layers of these sizes, input left; `units` are names for the units of a layer.

    Layers without names are left blank: `units=[["x₁", "x₂"]]` names the inputs alone.
    """
    across, up = APART * (len(sizes) - 1) + 1.6, min(max(sizes), MOST) + 1.4
    figure, axes = subplots(size=(0.62 * across + 0.6, 0.62 * up))
    draw_network(axes[0, 0], sizes, units=units)
    return figure


def draw_network(ax: "Axes", sizes: Sequence[int], *, units: Sequence[Sequence[str]] = ()) -> None:
    """The network on `ax`, every unit joined to all of the next column."""
    if len(sizes) < 2 or min(sizes) < 1:
        raise ValueError(f"a network needs two layers or more, of at least one unit each; got sizes={tuple(sizes)}")
    for names, size in zip(units, sizes, strict=False):
        if len(names) != size:
            raise ValueError(f"a layer needs a name for each unit; got {len(names)} names for {size} units")
    plain(ax)
    ax.set_aspect("equal")
    columns = [_column(APART * layer, size) for layer, size in enumerate(sizes)]
    for left, right in pairwise(columns):
        for start in left.values():
            for end in right.values():
                ax.plot([start[0], end[0]], [start[1], end[1]], color=FAINT, linewidth=0.9, zorder=1)
    foot = min(place[1] for column in columns for place in column.values()) - 0.75
    for layer, (column, size) in enumerate(zip(columns, sizes, strict=True)):
        colour = PALETTE[0] if layer == 0 else PALETTE[1] if layer == len(sizes) - 1 else PALETTE[2]
        for unit, place in column.items():
            _draw_unit(ax, place, colour, units[layer][unit] if layer < len(units) else "")
        if len(column) < size:
            ax.text(APART * layer, 0, "⋮", ha="center", va="center", fontsize=16, color=INK)
        ax.text(APART * layer, foot, _name(layer, len(sizes), size), ha="center", va="top", linespacing=1.4)
    ax.set_xlim(-0.9, APART * (len(sizes) - 1) + 0.9)
    ax.set_ylim(foot - 1.0, -foot - 0.15)


def _column(across: float, size: int) -> dict[int, Place]:
    """The places of the units of a layer that are drawn, by their number, the first on top."""
    half = MOST // 2
    drawn = list(range(size)) if size <= MOST else [*range(half), *range(size - half + 1, size)]
    slots = range(size) if size <= MOST else [slot for slot in range(MOST) if slot != half]
    height = min(size, MOST)
    return {unit: (across, (height - 1) / 2 - slot) for unit, slot in zip(drawn, slots, strict=True)}


def _draw_unit(ax: "Axes", place: Place, colour: str, name: str) -> None:
    from matplotlib.patches import Circle

    ax.add_patch(Circle(place, 0.34, facecolor=colour, edgecolor=INK, linewidth=0.8, zorder=2))
    ax.text(*place, name, ha="center", va="center", fontsize=9, color="#ffffff", zorder=3)


def _name(layer: int, layers: int, size: int) -> str:
    kind = "input" if layer == 0 else "output" if layer == layers - 1 else "hidden"
    return f"{kind}\n{size}"
