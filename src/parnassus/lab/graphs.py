"""Directed graphs as SVGs, laid out from left to right, in the colours of the page.

Edges to the left pass below the nodes, loops above them, and edges within a column are straight.
"""

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any

COLUMN, ROW = 176, 88  # pixels between neighbouring nodes
HALF_WIDTH, HALF_HEIGHT = 46, 26  # of a node
SAG = 44  # depth of an edge to the left below its nodes, height of a loop above its node


def graph_svg(answer: dict[str, Any]) -> str:
    """The graph as an SVG with a description as its label; all text is escaped."""
    nodes, edges = answer["nodes"], answer["edges"]
    heights = [node["y"] for node in nodes] + [y for edge in edges for _, y in edge["waypoints"]]
    top = max(heights)
    width = COLUMN * max(node["x"] for node in nodes) + 2 * HALF_WIDTH + 8
    has_back_edge = any(_is_back_edge(nodes, edge) for edge in edges)
    headroom = SAG if any(edge["start"] == edge["end"] for edge in edges) else 0
    height = ROW * (top - min(heights)) + 2 * HALF_HEIGHT + 24 + headroom + SAG * has_back_edge

    def pixel(x: float, y: float) -> tuple[float, float]:
        return COLUMN * x + HALF_WIDTH + 4, ROW * (top - y) + HALF_HEIGHT + 12 + headroom

    parts = []
    for edge in edges:
        start, end = nodes[edge["start"]], nodes[edge["end"]]
        (left, y0), (right, y1) = pixel(start["x"], start["y"]), pixel(end["x"], end["y"])
        if _is_back_edge(nodes, edge):
            parts.append(_back_edge((left, y0), (right, y1), edge["label"]))
            continue
        waypoints = [pixel(*point) for point in edge["waypoints"]]
        parts.append(_forward_edge([(left + HALF_WIDTH, y0), *waypoints, (right - HALF_WIDTH - 6, y1)], edge["label"]))
    parts += [_node(*pixel(node["x"], node["y"]), node) for node in nodes]
    label = escape(f"{answer['title']}: {_describe(nodes, edges)}", quote=True)
    size = f'width="{width:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" style="min-width:{0.75 * width:.0f}px"'
    return f'<svg role="img" aria-label="{label}" {size}>{"".join(parts)}</svg>'


def _node(x: float, y: float, node: dict[str, Any]) -> str:
    marked = ' class="marked"' if node["marked"] else ""
    size = f'width="{2 * HALF_WIDTH}" height="{2 * HALF_HEIGHT}"'
    frame = f'<rect{marked} x="{x - HALF_WIDTH:.1f}" y="{y - HALF_HEIGHT:.1f}" {size} rx="8"/>'
    name = f'<text x="{x:.1f}" y="{y - (9 if node["value"] else 0):.1f}">{escape(node["label"])}</text>'
    value = f'<text class="value" x="{x:.1f}" y="{y + 11:.1f}">{escape(node["value"])}</text>' if node["value"] else ""
    return frame + name + value


def _forward_edge(points: Sequence[tuple[float, float]], label: str) -> str:
    """A smooth line through the points with an arrow head, and a label next to its last bend."""
    bends = " ".join(
        f"C {(a + c) / 2:.1f} {b:.1f} {(a + c) / 2:.1f} {d:.1f} {c:.1f} {d:.1f}" for (a, b), (c, d) in pairwise(points)
    )
    (left, y0), (right, y1) = points[-2:]
    head = f'<path class="head" d="M {right + 6:.1f} {y1:.1f} l -8 -4 v 8 z"/>'
    slope = (y1 > y0 + 16) - (y1 < y0 - 16)  # on the page: 1 falls, -1 rises
    x, y = (left + right) / 2 + 22 * abs(slope), (y0 + y1) / 2 - (9 if slope >= 0 else -9)
    return f'<path d="M {points[0][0]:.1f} {points[0][1]:.1f} {bends}"/>{head}{_edge_label(x, y, label)}'


def _edge_label(x: float, y: float, label: str) -> str:
    return f'<text class="along" x="{x:.1f}" y="{y:.1f}">{escape(label)}</text>' if label else ""


def _is_back_edge(nodes: Sequence[dict[str, Any]], edge: dict[str, Any]) -> bool:
    """Whether an edge without waypoints does not lead to the right."""
    return not edge["waypoints"] and nodes[edge["end"]]["x"] <= nodes[edge["start"]]["x"]


def _back_edge(start: tuple[float, float], end: tuple[float, float], label: str) -> str:
    """A loop above its node, a straight line within a column, or otherwise a curve below both nodes."""
    (x0, y0), (x1, y1) = start, end
    if start == end:
        x0, x1, y, sag = x0 + 22, x1 - 22, y0 - HALF_HEIGHT, -SAG
        bend = f"C {x0 + 8:.1f} {y + sag:.1f} {x1 - 8:.1f} {y + sag:.1f} {x1:.1f} {y - 6:.1f}"
        return _vertical_arrow(f"M {x0:.1f} {y:.1f} {bend}", (x1, y), (end[0], y + 0.75 * sag - 8), label)
    if x0 == x1:
        side = 1 if y1 > y0 else -1
        line = f"M {x0:.1f} {y0 + side * HALF_HEIGHT:.1f} L {x1:.1f} {y1 - side * (HALF_HEIGHT + 6):.1f}"
        return _vertical_arrow(line, (x1, y1 - side * HALF_HEIGHT), (x1 + 16, (y0 + y1) / 2), label)
    x0, x1, low, high = x0 - 24, x1 + 24, y0 + HALF_HEIGHT, y1 + HALF_HEIGHT
    bend = f"C {x0:.1f} {low + SAG:.1f} {x1:.1f} {high + SAG:.1f} {x1:.1f} {high + 6:.1f}"
    label_position = (x0 + x1) / 2 - 16 * (low != high), (low + high) / 2 + 0.75 * SAG + 11
    return _vertical_arrow(f"M {x0:.1f} {low:.1f} {bend}", (x1, high), label_position, label)


def _vertical_arrow(line: str, tip: tuple[float, float], label_position: tuple[float, float], label: str) -> str:
    """A line with a head that points up or down to `tip`, and its label."""
    last = float(line.rsplit(" ", 1)[1])
    side = 1 if last > tip[1] else -1  # from below or from above
    head = f'<path class="head" d="M {tip[0]:.1f} {tip[1]:.1f} l -4 {8 * side} h 8 z"/>'
    return f'<path d="{line}"/>{head}{_edge_label(*label_position, label)}'


def _describe(nodes: Sequence[dict[str, Any]], edges: Sequence[dict[str, Any]]) -> str:
    described = [f"{node['label']} with value {node['value']}" if node["value"] else node["label"] for node in nodes]
    described += [
        f"{nodes[edge['start']]['label']} to {nodes[edge['end']]['label']}"
        + (f" with {edge['label']}" if edge["label"] else "")
        for edge in edges
    ]
    return "; ".join(described)
