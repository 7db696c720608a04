"""Graphs on a page: boxes from left to right and arrows between them, as an SVG in the colours of the page.

An arrow that leads back, or to its own box, hangs below or above the boxes; one in its own column goes straight.
"""

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any

COLUMN, ROW = 176, 88  # pixels from one box to the next
WIDE, HIGH = 46, 26  # half a box
HANG = 44  # how far an arrow that leads back hangs below its boxes, a loop above its own


def graph_svg(answer: dict[str, Any]) -> str:
    """The graph as an SVG with a label that says it in words; everything in it is escaped."""
    boxes, arrows = answer["boxes"], answer["arrows"]
    heights = [box["up"] for box in boxes] + [up for arrow in arrows for _, up in arrow["through"]]
    top = max(heights)
    width = COLUMN * max(box["across"] for box in boxes) + 2 * WIDE + 8
    back = any(_leads_back(boxes, arrow) for arrow in arrows)
    roof = HANG if any(arrow["start"] == arrow["end"] for arrow in arrows) else 0
    height = ROW * (top - min(heights)) + 2 * HIGH + 24 + roof + HANG * back

    def place(across: float, up: float) -> tuple[float, float]:
        return COLUMN * across + WIDE + 4, ROW * (top - up) + HIGH + 12 + roof

    drawn = []
    for arrow in arrows:
        start, end = boxes[arrow["start"]], boxes[arrow["end"]]
        (left, out), (right, into) = place(start["across"], start["up"]), place(end["across"], end["up"])
        if _leads_back(boxes, arrow):
            drawn.append(_back_arrow((left, out), (right, into), arrow["label"]))
            continue
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


def _leads_back(boxes: Sequence[dict[str, Any]], arrow: dict[str, Any]) -> bool:
    """Whether an arrow does not lead to the right, and has not been told how to go."""
    return not arrow["through"] and boxes[arrow["end"]]["across"] <= boxes[arrow["start"]]["across"]


def _back_arrow(start: tuple[float, float], end: tuple[float, float], label: str) -> str:
    """To its own box a loop above it, within a column a line, else a line that hangs below both."""
    (x0, y0), (x1, y1) = start, end
    if start == end:
        x0, x1, y, sag = x0 + 22, x1 - 22, y0 - HIGH, -HANG
        bend = f"C {x0 + 8:.1f} {y + sag:.1f} {x1 - 8:.1f} {y + sag:.1f} {x1:.1f} {y - 6:.1f}"
        return _hanging(f"M {x0:.1f} {y:.1f} {bend}", (x1, y), (end[0], y + 0.75 * sag - 8), label)
    if x0 == x1:
        side = 1 if y1 > y0 else -1
        line = f"M {x0:.1f} {y0 + side * HIGH:.1f} L {x1:.1f} {y1 - side * (HIGH + 6):.1f}"
        return _hanging(line, (x1, y1 - side * HIGH), (x1 + 16, (y0 + y1) / 2), label)
    x0, x1, low, high = x0 - 24, x1 + 24, y0 + HIGH, y1 + HIGH
    bend = f"C {x0:.1f} {low + HANG:.1f} {x1:.1f} {high + HANG:.1f} {x1:.1f} {high + 6:.1f}"
    words = (x0 + x1) / 2 - 16 * (low != high), (low + high) / 2 + 0.75 * HANG + 11
    return _hanging(f"M {x0:.1f} {low:.1f} {bend}", (x1, high), words, label)


def _hanging(line: str, tip: tuple[float, float], words: tuple[float, float], label: str) -> str:
    """A line, a head that points up or down to `tip`, and its words."""
    last = float(line.rsplit(" ", 1)[1])
    side = 1 if last > tip[1] else -1  # the line comes from below, or from above
    head = f'<path class="head" d="M {tip[0]:.1f} {tip[1]:.1f} l -4 {8 * side} h 8 z"/>'
    text = f'<text class="along" x="{words[0]:.1f}" y="{words[1]:.1f}">{escape(label)}</text>' if label else ""
    return f'<path d="{line}"/>{head}{text}'


def _in_words(boxes: Sequence[dict[str, Any]], arrows: Sequence[dict[str, Any]]) -> str:
    named = [f"{box['label']} holds {box['value']}" if box["value"] else box["label"] for box in boxes]
    joined = [
        f"{boxes[arrow['start']]['label']} to {boxes[arrow['end']]['label']}"
        + (f" with {arrow['label']}" if arrow["label"] else "")
        for arrow in arrows
    ]
    return "; ".join([*named, *joined])
