"""Line and bar charts; the style sheet of the page sets the colours of the SVGs of ECharts."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, isfinite, log10
from typing import Any

from nicegui import ui

from parnassus.report.style import PALETTE

INDICES = str.maketrans("0123456789ijkntx", "₀₁₂₃₄₅₆₇₈₉ᵢⱼₖₙₜₓ")
TICK_FORMAT = (
    "(value) => value === 0 || (Math.abs(value) >= 1e-3 && Math.abs(value) < 1e5)"
    " ? value.toLocaleString('en') : value.toExponential(0)"
)
"""JavaScript that formats a tick label: 0.01 and 1,000, but 1e-10."""
GREY = "rgba(128,136,146,.35)"
MARK = "rgba(128,136,146,1)"  # not the colour of a line
MAX_LABELLED = 20  # maximum number of integer positions on an axis for labelling the first and the last
Series = Mapping[str, tuple[Sequence[float], Sequence[float]]]


def add_chart(options: dict[str, Any], label: str) -> ui.echart:
    """Add a chart with a label for screen readers."""
    chart = ui.echart(options, renderer="svg").classes("chart")
    chart.props["role"] = "img"
    chart.props["aria-label"] = label
    return chart


def line_chart(
    lines: Series, *, x_label: str, y_label: str, log_y: bool = False, smooth: float = 0.0, marked: float | None = None
) -> dict[str, Any]:
    """Lines over a common x axis, with zoom by wheel or pinch, and a legend that hides and shows lines."""
    series = [
        line
        for index, (name, (x, y)) in enumerate(lines.items())
        for line in _line(name, x, y, PALETTE[index % len(PALETTE)], log_y=log_y, smooth=smooth)
    ]
    if marked is not None and series:
        series[0]["markLine"] = {
            "data": [{"xAxis": marked}],
            "symbol": "none",
            "animation": False,
            "lineStyle": {"color": MARK, "type": "dashed", "width": 1.5},
            "label": {"show": False},
        }
    positions = {position for x, _ in lines.values() for position in x}
    is_labelled = len(positions) <= MAX_LABELLED and all(position == int(position) for position in positions)
    return {
        "animation": False,
        "textStyle": {"fontFamily": "system-ui, sans-serif"},
        "grid": {"left": 12, "right": 22, "top": 52 if len(lines) > 1 else 34, "bottom": 44, "containLabel": True},
        "legend": {"top": 0, "type": "scroll", "data": list(lines), "show": len(lines) > 1},
        "tooltip": {"trigger": "axis", "confine": True, "order": "valueDesc"},
        "dataZoom": [
            {"type": "inside", "filterMode": "none"},
            {
                "type": "slider",
                "height": 14,
                "bottom": 4,
                "filterMode": "none",
                "showDetail": False,
                "showDataShadow": False,
            },
        ],
        "xAxis": {
            "type": "value",
            "name": subscript_indices(x_label),
            "nameLocation": "middle",
            "nameGap": 24,
            "min": "dataMin",
            "max": "dataMax",
            **({"minInterval": 1} if is_labelled else {}),
            "axisLabel": {"hideOverlap": True, "showMinLabel": is_labelled, "showMaxLabel": is_labelled},
            "splitLine": {"show": False},
            "axisLine": {"lineStyle": {"color": GREY}},
        },
        "yAxis": {
            "type": "log" if log_y else "value",
            **(_decades(series) if log_y else {}),
            "name": subscript_indices(y_label),
            "scale": True,
            "axisLabel": {":formatter": TICK_FORMAT},
            "nameTextStyle": {"align": "left"},
            "axisLine": {"onZero": False},
            "splitLine": {"lineStyle": {"color": GREY}},
        },
        "series": series,
    }


def _line(
    name: str, x: Sequence[float], y: Sequence[float], colour: str, *, log_y: bool, smooth: float
) -> list[dict[str, Any]]:
    """A line; with smoothing, the original line is drawn faintly behind it."""
    points = [[a, b] for a, b in zip(x, y, strict=False) if isfinite(b) and (b > 0 or not log_y)]
    line = {"type": "line", "name": name, "showSymbol": len(points) < 2, "color": colour, "lineStyle": {"width": 2}}
    if smooth <= 0:
        return [{**line, "data": points}]
    means = smooth_values([b for _, b in points], smooth)
    raw = {
        **line,
        "data": points,
        "lineStyle": {"width": 1, "opacity": 0.3},
        "tooltip": {"show": False},
        "silent": True,
    }
    return [{**line, "data": [[a, b] for (a, _), b in zip(points, means, strict=True)]}, raw]


def _decades(series: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The powers of ten that enclose all points; by default, ECharts may add ten decades on either side."""
    values = [point[1] for line in series for point in line["data"]]
    if not values:
        return {}
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return {"min": 10.0**low, "max": 10.0 ** max(high, low + 1)}


def subscript_indices(text: str) -> str:
    """Text with the subscript characters of Unicode for indices, where they exist: λᵢ for λ_i."""
    return re.sub(r"_([0-9ijkntx])(?![A-Za-z0-9])", lambda match: match[1].translate(INDICES), text)


def smooth_values(values: Sequence[float], weight: float) -> list[float]:
    """Exponential moving average with bias correction: m_t = w m_{t−1} + (1 − w) y_t, over 1 − wᵗ."""
    means, mean = [], 0.0
    for count, value in enumerate(values, start=1):
        mean = weight * mean + (1 - weight) * value
        means.append(mean / (1 - weight**count))
    return means


def bar_rows(answer: dict[str, Any]) -> str:
    """Bars in rows with their names and values, as HTML."""
    values, truth = answer["values"], answer["truth"]
    errors = answer["errors"] or [0.0] * len(values)
    ends = [abs(value) + error for value, error in zip(values, errors, strict=True)]
    largest = max([*ends, *map(abs, truth)], default=1.0) or 1.0
    are_fractions = all(0 <= value <= 1 for value in [*values, *ends]) and not truth
    scale = 100 if are_fractions else 100 / largest  # percent of the row per unit
    rows = []
    for index, (name, value) in enumerate(zip(answer["names"], values, strict=True)):
        marked = " marked" if index == answer["marked"] else ""
        kind = marked + (" negative" if value < 0 else "")
        bar = f'<span class="fill{kind}" style="display:block;width:{scale * abs(value):.1f}%"></span>'
        if errors[index]:
            low = max(0.0, scale * (abs(value) - errors[index]))
            bar += f'<span class="error" style="left:{low:.1f}%;width:{scale * ends[index] - low:.1f}%"></span>'
        if truth:
            position = max(0.0, scale * (truth[index] if value >= 0 else -truth[index]))
            bar += f'<span class="truth" style="left:{position:.1f}%"></span>'
        rows.append(
            f'<span class="name{marked}">{escape(name)}</span><span class="track">{bar}</span>'
            f'<span class="value{marked}">{value:.3f}</span>'
        )
    return f'<div class="hbars">{"".join(rows)}</div>'


def column_chart(answer: dict[str, Any]) -> dict[str, Any]:
    """A vertical bar for each value."""
    data = [
        {"value": value, "itemStyle": {"color": PALETTE[1] if index == answer["marked"] else PALETTE[0]}}
        for index, value in enumerate(answer["values"])
    ]
    return {
        "animation": False,
        "grid": {"left": 8, "right": 8, "top": 12, "bottom": 8, "containLabel": True},
        "tooltip": {"trigger": "axis", "confine": True},
        "xAxis": {"type": "category", "data": answer["names"]},
        "yAxis": {"type": "value"},
        "series": [{"type": "bar", "data": data}],
    }
