"""Diagrams of fully connected networks: a circle per unit, a column per layer, a line per weight."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from parnassus.report.style import FAINT, INK, PALETTE, remove_frame, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_UNITS = 12
"""Larger layers show their first and last units, with dots between them."""
LAYER_DISTANCE = 2.2  # in distances between units

Position = tuple[float, float]


def network_diagram(sizes: Sequence[int], *, units: Sequence[Sequence[str]] = ()) -> "Figure":
    """The fully connected network with layers of these sizes, input left; `units` are the labels of the units.

    Layers without labels are blank: `units=[["x₁", "x₂"]]` labels the inputs only.
    """
    width, height = LAYER_DISTANCE * (len(sizes) - 1) + 1.6, min(max(sizes), MAX_UNITS) + 1.4
    figure, axes = subplots(size=(0.62 * width + 0.6, 0.62 * height))
    draw_network(axes[0, 0], sizes, units=units)
    return figure


def draw_network(ax: "Axes", sizes: Sequence[int], *, units: Sequence[Sequence[str]] = ()) -> None:
    """Draw the network on `ax`."""
    if len(sizes) < 2 or min(sizes) < 1:
        raise ValueError(f"a network must have at least two layers of at least one unit; got sizes={tuple(sizes)}")
    for names, size in zip(units, sizes, strict=False):
        if len(names) != size:
            raise ValueError(f"a layer must have a label for each unit; got {len(names)} labels for {size} units")
    remove_frame(ax)
    ax.set_aspect("equal")
    columns = [_column(LAYER_DISTANCE * layer, size) for layer, size in enumerate(sizes)]
    for left, right in pairwise(columns):
        for start in left.values():
            for end in right.values():
                ax.plot([start[0], end[0]], [start[1], end[1]], color=FAINT, linewidth=0.9, zorder=1)
    bottom = min(position[1] for column in columns for position in column.values()) - 0.75
    for layer, (column, size) in enumerate(zip(columns, sizes, strict=True)):
        colour = PALETTE[0] if layer == 0 else PALETTE[1] if layer == len(sizes) - 1 else PALETTE[2]
        for unit, position in column.items():
            _draw_unit(ax, position, colour, units[layer][unit] if layer < len(units) else "")
        if len(column) < size:
            ax.text(LAYER_DISTANCE * layer, 0, "⋮", ha="center", va="center", fontsize=16, color=INK)
        ax.text(
            LAYER_DISTANCE * layer,
            bottom,
            _layer_label(layer, len(sizes), size),
            ha="center",
            va="top",
            linespacing=1.4,
        )
    ax.set_xlim(-0.9, LAYER_DISTANCE * (len(sizes) - 1) + 0.9)
    ax.set_ylim(bottom - 1.0, -bottom - 0.15)


def _column(x: float, size: int) -> dict[int, Position]:
    """The positions of the units of a layer that are drawn, by their indices, the first on top."""
    half = MAX_UNITS // 2
    units = list(range(size)) if size <= MAX_UNITS else [*range(half), *range(size - half + 1, size)]
    slots = range(size) if size <= MAX_UNITS else [slot for slot in range(MAX_UNITS) if slot != half]
    height = min(size, MAX_UNITS)
    return {unit: (x, (height - 1) / 2 - slot) for unit, slot in zip(units, slots, strict=True)}


def _draw_unit(ax: "Axes", position: Position, colour: str, name: str) -> None:
    from matplotlib.patches import Circle

    ax.add_patch(Circle(position, 0.34, facecolor=colour, edgecolor=INK, linewidth=0.8, zorder=2))
    ax.text(*position, name, ha="center", va="center", fontsize=9, color="#ffffff", zorder=3)


def _layer_label(layer: int, layers: int, size: int) -> str:
    kind = "input" if layer == 0 else "output" if layer == layers - 1 else "hidden"
    return f"{kind}\n{size}"
