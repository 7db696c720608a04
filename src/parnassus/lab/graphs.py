"""Graphs on a page: boxes from left to right and arrows between them, as an SVG in the colours of the page."""

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any

COLUMN, ROW = 176, 88  # pixels from one box to the next
WIDE, HIGH = 46, 26  # half a box


def graph_svg(answer: dict[str, Any]) -> str:
    """The graph as an SVG with a label that says it in words; everything in it is escaped."""
    boxes, arrows = answer["boxes"], answer["arrows"]
    heights = [box["up"] for box in boxes] + [up for arrow in arrows for _, up in arrow["through"]]
    top = max(heights)
    width = COLUMN * max(box["across"] for box in boxes) + 2 * WIDE + 8
    height = ROW * (top - min(heights)) + 2 * HIGH + 24

    def place(across: float, up: float) -> tuple[float, float]:
        return COLUMN * across + WIDE + 4, ROW * (top - up) + HIGH + 12

    drawn = []
    for arrow in arrows:
        start, end = boxes[arrow["start"]], boxes[arrow["end"]]
        (left, out), (right, into) = place(start["across"], start["up"]), place(end["across"], end["up"])
        stops = [(left + WIDE, out), *(place(*stop) for stop in arrow["through"]), (right - WIDE - 6, into)]
        drawn.append(_arrow(stops, arrow["label"]))
    drawn += [_box(*place(box["across"], box["up"]), box) for box in boxes]
    label = escape(f"{answer['title']}: {_in_words(boxes, arrows)}", quote=True)
    size = f'width="{width:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" style="min-width:{0.75 * width:.0f}px"'
    return f'<svg role="img" aria-label="{label}" {size}>{"".join(drawn)}</svg>'


def _box(x: float, y: float, box: dict[str, Any]) -> str:
    marked = ' class="marked"' if box["marked"] else ""
    frame = f'<rect{marked} x="{x - WIDE:.1f}" y="{y - HIGH:.1f}" width="{2 * WIDE}" height="{2 * HIGH}" rx="8"/>'
    name = f'<text x="{x:.1f}" y="{y - (9 if box["value"] else 0):.1f}">{escape(box["label"])}</text>'
    value = f'<text class="value" x="{x:.1f}" y="{y + 11:.1f}">{escape(box["value"])}</text>' if box["value"] else ""
    return frame + name + value


def _arrow(stops: Sequence[tuple[float, float]], label: str) -> str:
    """A smooth line through the stops, its head, and words beside its last bend where no other arrow comes along."""
    bends = " ".join(
        f"C {(a + c) / 2:.1f} {b:.1f} {(a + c) / 2:.1f} {d:.1f} {c:.1f} {d:.1f}" for (a, b), (c, d) in pairwise(stops)
    )
    (left, out), (right, into) = stops[-2:]
    head = f'<path class="head" d="M {right + 6:.1f} {into:.1f} l -8 -4 v 8 z"/>'
    falls = (into > out + 16) - (into < out - 16)
    x, y = (left + right) / 2 + 22 * abs(falls), (out + into) / 2 - (9 if falls >= 0 else -9)
    words = f'<text class="along" x="{x:.1f}" y="{y:.1f}">{escape(label)}</text>' if label else ""
    return f'<path d="M {stops[0][0]:.1f} {stops[0][1]:.1f} {bends}"/>{head}{words}'


def _in_words(boxes: Sequence[dict[str, Any]], arrows: Sequence[dict[str, Any]]) -> str:
    named = [f"{box['label']} holds {box['value']}" if box["value"] else box["label"] for box in boxes]
    joined = [
        f"{boxes[arrow['start']]['label']} to {boxes[arrow['end']]['label']}"
        + (f" with {arrow['label']}" if arrow["label"] else "")
        for arrow in arrows
    ]
    return "; ".join([*named, *joined])
