"""Plots of computation graphs."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from parnassus.autodiff.graph_layout import GraphLayout
from parnassus.autodiff.tape import Variable
from parnassus.report import FAINT, INK, PALETTE, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HALF_WIDTH, HALF_HEIGHT = 0.3, 0.3  # of a box; columns and rows are 1 apart


def plot_graph(graph: GraphLayout) -> "Figure":
    """Nodes as boxes from left to right, edges as arrows with their labels."""
    x = [node.x for node in graph.nodes]
    y = [node.y for node in graph.nodes] + [height for edge in graph.edges for _, height in edge.waypoints]
    columns, rows = max(x) + 1, max(y) - min(y) + 1
    figure, axes = subplots(size=(min(11.0, 1.95 * columns), 0.95 * rows + 0.3))
    ax = axes[0, 0]
    ax.set_axis_off()
    ax.set(xlim=(-0.45, columns - 0.55), ylim=(min(y) - 0.55, max(y) + 0.55))
    for edge in graph.edges:
        start, end = graph.nodes[edge.start], graph.nodes[edge.end]
        draw_arrow(ax, [(start.x + HALF_WIDTH, start.y), *edge.waypoints, (end.x - HALF_WIDTH, end.y)], edge.label)
    for node in graph.nodes:
        draw_box(ax, node.x, node.y, colour=PALETTE[1] if node.is_input else PALETTE[0])
        ax.text(node.x, node.y + (0.1 if node.value else 0), node.label, ha="center", va="center")
        ax.text(node.x, node.y - 0.16, node.value, ha="center", va="center", fontsize=8.5, color=FAINT)
    return figure


def draw_box(ax: "Axes", x: float, y: float, *, colour: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = "round,pad=0,rounding_size=0.08"
    corner = x - HALF_WIDTH, y - HALF_HEIGHT
    size = 2 * HALF_WIDTH, 2 * HALF_HEIGHT
    ax.add_patch(FancyBboxPatch(corner, *size, style, facecolor="none", edgecolor=colour, lw=1.6))


def draw_arrow(ax: "Axes", points: Sequence[tuple[float, float]], label: str) -> None:
    """A smooth curve through the points, with an arrowhead at its end."""
    for (left, low), (right, high) in pairwise(points):
        t = np.linspace(0, 1, 30)
        ax.plot(left + (right - left) * t, low + (high - low) * t**2 * (3 - 2 * t), color=INK, lw=1, zorder=1)
    (left, low), (right, high) = points[-2:]
    ax.annotate(
        "", (right, high), (right - 0.04, high), arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1}, zorder=1
    )
    rises, level = high > low, abs(high - low) < 0.05
    # the label stands on the side without other edges
    horizontal, shift = ("center", 0.05) if level else ("left", -0.03 if rises else 0.03)
    vertical = "top" if rises and not level else "bottom"
    middle = (left + right) / 2, (low + high) / 2 + shift
    ax.text(*middle, label, ha=horizontal, va=vertical, fontsize=9, color=PALETTE[2])


def shape_label(node: Variable) -> str:
    """The shape of a node's value, such as `32 × 4`."""
    return " × ".join(map(str, node.shape)) or "1"
