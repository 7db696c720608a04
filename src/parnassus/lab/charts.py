"""Charts of curves: what ECharts is told to draw. Its SVG takes the colours of the page's sheet."""

import re
from collections.abc import Mapping, Sequence
from math import ceil, floor, isfinite, log10
from typing import Any

from nicegui import ui

from parnassus.report.ink import PALETTE

INDICES = str.maketrans("0123456789ijkntx", "₀₁₂₃₄₅₆₇₈₉ᵢⱼₖₙₜₓ")
NUMBER = (
    "(value) => value === 0 || (Math.abs(value) >= 1e-3 && Math.abs(value) < 1e5)"
    " ? value.toLocaleString('en') : value.toExponential(0)"
)
"""How the axis writes a number: 0.01 and 1,000, but 1e-10."""
GREY = "rgba(128,136,146,.35)"
MARK = "rgba(128,136,146,1)"  # of no line's colour
FEW = 20  # whole places on an axis that can all be named; of more, where the first and the last lie is no matter
Series = Mapping[str, tuple[Sequence[float], Sequence[float]]]


def chart(options: dict[str, Any], label: str) -> ui.echart:
    """A chart for the eye, with a label for the ear."""
    shown = ui.echart(options, renderer="svg").classes("chart")
    shown.props["role"] = "img"
    shown.props["aria-label"] = label
    return shown


def curves(
    lines: Series, *, x_label: str, y_label: str, log_y: bool = False, smooth: float = 0.0, marked: float | None = None
) -> dict[str, Any]:
    """Lines over one axis: the wheel and two fingers zoom, the legend hides and shows."""
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
    places = {place for x, _ in lines.values() for place in x}
    few = len(places) <= FEW and all(place == int(place) for place in places)
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
            "name": lowered(x_label),
            "nameLocation": "middle",
            "nameGap": 24,
            "min": "dataMin",
            "max": "dataMax",
            **({"minInterval": 1} if few else {}),
            "axisLabel": {"hideOverlap": True, "showMinLabel": few, "showMaxLabel": few},
            "splitLine": {"show": False},
            "axisLine": {"lineStyle": {"color": GREY}},
        },
        "yAxis": {
            "type": "log" if log_y else "value",
            **(_decades(series) if log_y else {}),
            "name": lowered(y_label),
            "scale": True,
            "axisLabel": {":formatter": NUMBER},
            "nameTextStyle": {"align": "left"},
            "axisLine": {"onZero": False},
            "splitLine": {"lineStyle": {"color": GREY}},
        },
        "series": series,
    }


def _line(
    name: str, x: Sequence[float], y: Sequence[float], colour: str, *, log_y: bool, smooth: float
) -> list[dict[str, Any]]:
    """A line; smoothed, the line as it was stays behind it, faint."""
    points = [[a, b] for a, b in zip(x, y, strict=False) if isfinite(b) and (b > 0 or not log_y)]
    line = {"type": "line", "name": name, "showSymbol": len(points) < 2, "color": colour, "lineStyle": {"width": 2}}
    if smooth <= 0:
        return [{**line, "data": points}]
    averaged = smoothed([b for _, b in points], smooth)
    raw = {
        **line,
        "data": points,
        "lineStyle": {"width": 1, "opacity": 0.3},
        "tooltip": {"show": False},
        "silent": True,
    }
    return [{**line, "data": [[a, b] for (a, _), b in zip(points, averaged, strict=True)]}, raw]


def _decades(series: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The powers of ten that hold every point; left alone, ECharts may add ten of them on either side."""
    values = [point[1] for line in series for point in line["data"]]
    if not values:
        return {}
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return {"min": 10.0**low, "max": 10.0 ** max(high, low + 1)}


def lowered(text: str) -> str:
    """λ_i with its index below the line, where there is a letter for it."""
    return re.sub(r"_([0-9ijkntx])(?![A-Za-z0-9])", lambda found: found[1].translate(INDICES), text)


def smoothed(values: Sequence[float], weight: float) -> list[float]:
    """Exponential moving average without its start-up bias: m_t = w m_{t−1} + (1 − w) y_t, over 1 − wᵗ."""
    averaged, mean = [], 0.0
    for count, value in enumerate(values, start=1):
        mean = weight * mean + (1 - weight) * value
        averaged.append(mean / (1 - weight**count))
    return averaged
