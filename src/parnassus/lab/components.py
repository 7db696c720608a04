"""Components that run in the browser: a slider, a canvas to draw on, and planes with one or several movable points."""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

from nicegui import events, ui

from parnassus.report.style import PALETTE


class Slider(ui.element):
    """The native slider of the browser, with keyboard and screen-reader support; `on_change` receives the value."""

    def __init__(
        self, low: float, high: float, value: float, on_change: Callable[[float], None], *, step: float = 1
    ) -> None:
        super().__init__("input")
        self.low, self.high, self.value = low, high, value
        self.props.update({"type": "range", "min": low, "max": high, "step": step, "value": value})
        self._on_change = on_change
        self.on("input", self._receive, js_handler="(event) => emit(Number(event.target.value))")

    def _receive(self, event: events.GenericEventArguments) -> None:
        if isinstance(event.args, int | float) and not isinstance(event.args, bool) and isfinite(event.args):
            self.set(min(self.high, max(self.low, event.args)))

    def set(self, value: float) -> None:
        """Change the value, also in the browser."""
        self.value = value
        self.props["value"] = value  # a page that is rendered again shows the current value
        self._on_change(value)


class DrawingCanvas(ui.element, component="drawing_canvas.js"):
    """A canvas of `shape` pixels; `on_draw` receives the grey values, row by row."""

    def __init__(
        self, shape: Sequence[int], value: Sequence[float], label: str, on_draw: Callable[[Any], None]
    ) -> None:
        super().__init__()
        self.props.update({"shape": list(shape), "value": list(value), "label": label})
        self.on("draw", lambda event: on_draw(event.args))

    def load(self, values: Sequence[float]) -> None:
        """Replace the drawing."""
        self.run_method("load", list(values))


class PlaneCanvas(ui.element, component="plane_canvas.js"):
    """Points of a plane and a movable point; `on_move` receives the point as the pointer or an arrow key moves it.

    Without a movable point the canvas is an image.
    """

    def __init__(
        self,
        plane: Mapping[str, Any],
        point: Sequence[float] | None,
        label: str,
        on_move: Callable[[Any], None] | None = None,
    ) -> None:
        super().__init__()
        self.props.update({"plane": dict(plane), "point": point and list(point), "label": label})
        self.props["palette"] = list(PALETTE)
        if on_move is not None:
            self.on("move", lambda event: on_move(event.args))

    def show(self, answer: Mapping[str, Any]) -> None:
        """Draw trajectories over contour lines; the axes of the answer are scaled to those of the plane."""
        plane = self.props["plane"]
        x_offset, x_scale = _axis_map(answer["x_range"], plane["x_range"])
        y_offset, y_scale = _axis_map(answer["y_range"], plane["y_range"])

        def scale(points: Sequence[Sequence[float]]) -> list[list[float]]:
            return [[x_offset + x_scale * x, y_offset + y_scale * y] for x, y in points]

        self.props["paths"] = {name: scale(points) for name, points in answer["paths"].items()}
        self.props["thinLines"] = [scale(line) for line in answer["thin_lines"]]
        self.props["arrows"] = [scale(arrow) for arrow in answer["arrows"]]
        self.props["dots"] = scale(answer["points"])
        self.props["levels"] = answer["levels"]


class PointsCanvas(PlaneCanvas, component="plane_canvas.js"):
    """A plane with up to `max_points` points: a click adds or removes a point, a drag moves it.

    `on_change` receives all points. The space bar acts as a click, and the delete key removes all points.
    """

    def __init__(
        self,
        plane: Mapping[str, Any],
        points: Sequence[Sequence[float]],
        label: str,
        on_change: Callable[[Any], None],
        *,
        max_points: int,
    ) -> None:
        super().__init__(plane, None, label, on_change)
        self.props.update({"points": [list(point) for point in points], "maxPoints": max_points})

    def load(self, points: Sequence[Sequence[float]]) -> None:
        """Replace the points."""
        self.run_method("load", [list(point) for point in points])


def _axis_map(source: Sequence[float], target: Sequence[float]) -> tuple[float, float]:
    """(a, b) such that a + b x maps the interval `source` to `target`."""
    scale = (target[1] - target[0]) / (source[1] - source[0])
    return target[0] - scale * source[0], scale
