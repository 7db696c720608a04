"""Views of the controls of probes: one class per type of control, with a registry at the end of this file."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import log10
from typing import Any, ClassVar, TypeAlias

from nicegui import ui

from parnassus.lab.components import DrawingCanvas, PlaneCanvas, PointsCanvas, Slider
from parnassus.lab.tags import button, tag, text_element
from parnassus.report.formatting import format_number
from parnassus.report.style import PALETTE

Spec: TypeAlias = dict[str, Any]
"""The plain values of a control, as returned by its method `to_plain`, and its name."""
OnChange: TypeAlias = Callable[[Any], None]
SLIDER_STEPS = 200


class ControlView(ABC):
    """The view of one `kind` of controls; `plane` is its canvas for trajectories, if it has one."""

    kind: ClassVar[str]
    plane: PlaneCanvas | None = None

    def __init__(self, spec: Spec, on_change: OnChange) -> None:
        self.spec, self.on_change = spec, on_change
        with tag("div", classes="control"):
            self.build()

    @abstractmethod
    def build(self) -> None:
        """Add the elements to the page."""


class IntSliderView(ControlView):
    """A slider over integers, with the current value."""

    kind = "int_slider"

    def build(self) -> None:
        low, high, initial = self.spec["low"], self.spec["high"], self.spec["initial"]
        self.output = _slider_label(self.spec)
        slider = Slider(low, high, initial, self._change)
        slider.props["aria-labelledby"] = f"label-{self.spec['name']}"

    def _change(self, value: float) -> None:
        self.output.text = format_number(int(value), 3)
        self.on_change(int(value))


class FloatSliderView(ControlView):
    """A slider over real numbers, on a linear or a logarithmic scale, with the current value."""

    kind = "float_slider"

    def build(self) -> None:
        low, high, initial = (self._position(self.spec[key]) for key in ("low", "high", "initial"))
        self.output = _slider_label(self.spec)
        slider = Slider(low, high, initial, self._change, step=(high - low) / SLIDER_STEPS)
        slider.props["aria-labelledby"] = f"label-{self.spec['name']}"

    def _position(self, value: float) -> float:
        return log10(value) if self.spec["log"] else value

    def _change(self, position: float) -> None:
        value = 10**position if self.spec["log"] else position
        value = float(min(self.spec["high"], max(self.spec["low"], value)))
        self.output.text = format_number(value, 3)
        self.on_change(value)


class SelectView(ControlView):
    """A list of choices."""

    kind = "select"

    def build(self) -> None:
        choices = dict(enumerate(self.spec["choices"]))
        initial, label = self.spec["initial"], self.spec["label"]
        select = ui.select(choices, value=initial, label=label, on_change=lambda event: self.on_change(event.value))
        select.props("outlined dense")


class TextInputView(ControlView):
    """A text field, evaluated while the user types."""

    kind = "text_input"

    def build(self) -> None:
        initial, label = self.spec["initial"], self.spec["label"]
        field = ui.input(label, value=initial, on_change=lambda event: self.on_change(event.value or ""))
        field.props(f"outlined dense autogrow maxlength={self.spec['max_length']} spellcheck=false")


class CanvasView(ControlView):
    """A view with a canvas, whose content can be replaced."""

    canvas: DrawingCanvas | PointsCanvas

    def _load(self, content: list[Any]) -> None:
        self.canvas.load(content)
        self.on_change(content)


class DrawingPadView(CanvasView):
    """A canvas to draw on, with buttons that clear it or load an example."""

    kind = "drawing_pad"

    def build(self) -> None:
        tag("div", self.spec["label"], "name")
        label = f"{self.spec['label']}. Draw with the pointer, or with keys: arrows move, space draws, delete clears."
        self.canvas = DrawingCanvas(self.spec["shape"], self.spec["initial"], label, self.on_change)
        with tag("div", classes="row").style("margin-top: .5rem; gap: .3rem"):
            button("Clear", lambda: self._load([0.0] * len(self.spec["initial"])), small=True)
            tag("span", "Load an example:", "kicker")
            for name, values in self.spec["examples"]:
                button(name, lambda values=values: self._load(values), small=True)


class PointPickerView(ControlView):
    """A plane with a point that follows the pointer, and a legend of the classes of its data."""

    kind = "point_picker"

    def build(self) -> None:
        tag("div", self.spec["label"], "name")
        label = f"{self.spec['label']}. Move the pointer or use the arrow keys; a click fixes the point."
        self.plane = PlaneCanvas(self.spec["plane"], self.spec["initial"], label, self.on_change)
        classes = self.spec["plane"]["classes"]
        if any(len(name) > 2 for name in classes):  # shorter names are drawn in the plane
            _add_class_legend(classes)
        tag("div", "Move the pointer to change the point; click to fix or release it.", "kicker")


class PointsPickerView(CanvasView):
    """A plane to which points can be added, with buttons that remove them or restore the initial ones."""

    kind = "points_picker"

    def build(self) -> None:
        tag("div", self.spec["label"], "name")
        keys = "With keys: arrows move a cross, space adds or removes a point there, delete clears."
        label, initial = f"{self.spec['label']}. {keys}", self.spec["initial"]
        self.canvas = PointsCanvas(
            self.spec["plane"], initial, label, self.on_change, max_points=self.spec["max_points"]
        )
        self.plane = self.canvas
        tag("div", "Click to add a point, click on a point to remove it, drag to move it.", "kicker")
        with tag("div", classes="row").style("margin-top: .3rem; gap: .3rem"):
            button("Clear", lambda: self._load([]), small=True)
            button("Reset", lambda: self._load(initial), small=True)


def _slider_label(spec: Spec) -> ui.label:
    """The label of a slider; returns the element that shows the current value."""
    with tag("div", classes="name"):
        tag("span", spec["label"], id=f"label-{spec['name']}")
        return text_element("output", format_number(spec["initial"], 3))


def _add_class_legend(classes: list[str]) -> None:
    with tag("ul", classes="row").style("margin-top: .5rem; gap: .2rem .8rem; font-size: .85rem"):
        for index, name in enumerate(classes):
            with tag("li", classes="row").style("gap: .3rem"):
                colour = PALETTE[index % len(PALETTE)]
                tag("span").style(f"width: .7rem; height: .7rem; border-radius: 50%; background: {colour}")
                tag("span", name)


CONTROL_VIEWS: dict[str, type[ControlView]] = {
    view.kind: view
    for view in (
        IntSliderView,
        FloatSliderView,
        SelectView,
        TextInputView,
        DrawingPadView,
        PointPickerView,
        PointsPickerView,
    )
}
