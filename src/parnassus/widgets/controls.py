"""Controls of probes, as annotations of their arguments.

    def rebuild(trained: Trained, components: Annotated[int, IntSlider("components", 1, num_features)] = 16) -> ...

A limit that depends on the trained run is a function of it. `read` converts an external value to the type of the
control and checks its limits. A new type of control needs a class in this file and a view in `lab/controls.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from sys import float_info
from typing import Any, ClassVar, TypeAlias, TypeVar, cast

import torch
from torch import Tensor

from parnassus.train.trained import TrainedRun
from parnassus.widgets.encoding import PlainValues, round_values

Number = TypeVar("Number", int, float)
Value = TypeVar("Value")
ControlType = TypeVar("ControlType", bound="Control")
PerRun: TypeAlias = Value | Callable[[TrainedRun], Value]
"""A value, or a function that computes it from a trained run."""
Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Control(ABC):
    """A typed argument of a probe that the user may change; `kind` identifies its view in the lab.

    >>> FloatSlider("temperature", 0.1, 2.0).label
    'temperature'
    """

    kind: ClassVar[str]
    label: str

    def resolve(self: ControlType, trained: TrainedRun | None) -> ControlType:
        """This control with the limits of a run: functions of the run are replaced by their values."""
        limits = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(self, **{name: _resolve(limit, trained) for name, limit in limits.items() if callable(limit)})

    @abstractmethod
    def initial_value(self, default: object) -> object:
        """The default of the argument, clipped to the limits."""

    @abstractmethod
    def read(self, value: object) -> object:
        """Convert an external value to the type of the control; raises ValueError if it is not valid."""

    def to_plain(self, initial: Any) -> PlainValues:
        """The resolved control as plain values, with its initial value."""
        return {"kind": self.kind, "label": self.label, **self._plain_content(initial)}

    @abstractmethod
    def _plain_content(self, initial: Any) -> PlainValues: ...


@dataclass(frozen=True)
class IntSlider(Control):
    """An integer between two limits.

    >>> IntSlider("steps", 1, 10).read(5)
    5
    """

    kind: ClassVar[str] = "int_slider"
    low: PerRun[int]
    high: PerRun[int]

    def initial_value(self, default: object) -> int:
        return _clip(cast("int", default), cast("int", self.low), cast("int", self.high))

    def read(self, value: object) -> int:
        number = _read_number(self.label, value, self.low, self.high)
        if number != int(number):
            raise ValueError(f"{self.label} must be an integer; got {number:g}")
        return int(number)

    def _plain_content(self, initial: int) -> PlainValues:
        return {"low": self.low, "high": self.high, "initial": initial}


@dataclass(frozen=True)
class FloatSlider(Control):
    """A real number between two limits, on a logarithmic scale if `log`.

    >>> FloatSlider("temperature", 0.1, 2.0).read(1.5)
    1.5
    """

    kind: ClassVar[str] = "float_slider"
    low: PerRun[float]
    high: PerRun[float]
    log: bool = False

    def initial_value(self, default: object) -> float:
        return _clip(cast("float", default), cast("float", self.low), cast("float", self.high))

    def read(self, value: object) -> float:
        return _read_number(self.label, value, self.low, self.high)

    def _plain_content(self, initial: float) -> PlainValues:
        return {"low": self.low, "high": self.high, "log": self.log, "initial": initial}


@dataclass(frozen=True)
class Select(Control):
    """One of several choices, given by its index.

    >>> Select("kernel", ["Gaussian", "linear"]).read(1)
    1
    """

    kind: ClassVar[str] = "select"
    choices: PerRun[Sequence[str]]

    def initial_value(self, default: object) -> int:
        return _clip(cast("int", default), 0, len(self._choices) - 1)

    def read(self, value: object) -> int:
        number = _read_number(self.label, value, 0, len(self._choices) - 1)
        if number != int(number):
            raise ValueError(f"{self.label} must be one of the {len(self._choices)} choices")
        return int(number)

    def _plain_content(self, initial: int) -> PlainValues:
        return {"choices": list(self._choices), "initial": initial}

    @property
    def _choices(self) -> Sequence[str]:
        return cast("Sequence[str]", self.choices)


@dataclass(frozen=True)
class DrawingPad(Control):
    """A grey image drawn by hand: a tensor (height, width) with 0 for the background and 1 for the ink.

    `examples` are named images from which a drawing can start.

    >>> DrawingPad("digit", (8, 8)).kind
    'drawing_pad'
    """

    kind: ClassVar[str] = "drawing_pad"
    shape: PerRun[tuple[int, int]]
    examples: PerRun[Sequence[tuple[str, Tensor]]] = ()

    def initial_value(self, default: object) -> Tensor:
        if isinstance(default, Tensor):
            return default
        return self._examples[0][1] if self._examples else torch.zeros(self._shape)

    def read(self, value: object) -> Tensor:
        height, width = self._shape
        if not isinstance(value, list | tuple) or len(value) != height * width:
            raise ValueError(f"{self.label} must be {height} × {width} grey values, row by row")
        if not all(isinstance(grey, int | float) and not isinstance(grey, bool) and 0 <= grey <= 1 for grey in value):
            raise ValueError(f"{self.label} must have grey values between 0 and 1")
        return torch.tensor(value, dtype=torch.float32).view(height, width)

    def _plain_content(self, initial: Tensor) -> PlainValues:
        examples = [(name, round_values(image, 3)) for name, image in self._examples]
        return {"shape": list(self._shape), "examples": examples, "initial": round_values(initial, 3)}

    @property
    def _shape(self) -> tuple[int, int]:
        return cast("tuple[int, int]", self.shape)

    @property
    def _examples(self) -> Sequence[tuple[str, Tensor]]:
        return cast("Sequence[tuple[str, Tensor]]", self.examples)


@dataclass(frozen=True)
class Plane:
    """A rectangle of the plane with the points (n, 2) in it, which may have class labels.

    >>> Plane((0.0, 1.0), (0.0, 1.0), torch.zeros(5, 2)).points.shape
    torch.Size([5, 2])
    """

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    points: Tensor
    labels: Tensor | None = None
    classes: Sequence[str] = ()
    x_label: str = ""
    y_label: str = ""

    def to_plain(self) -> PlainValues:
        labels = [0] * len(self.points) if self.labels is None else self.labels.tolist()
        pairs = zip(self.points.tolist(), labels, strict=True)
        return {
            "x_range": list(self.x_range),
            "y_range": list(self.y_range),
            "points": [[round(x, 4), round(y, 4), label] for (x, y), label in pairs],
            "classes": list(self.classes),
            "x_label": self.x_label,
            "y_label": self.y_label,
        }


@dataclass(frozen=True)
class PointPicker(Control):
    """A point of a plane, which follows the pointer.

    >>> plane = Plane((0.0, 1.0), (0.0, 1.0), torch.zeros(5, 2))
    >>> PointPicker("x", plane).kind
    'point_picker'
    """

    kind: ClassVar[str] = "point_picker"
    plane: PerRun[Plane]

    def initial_value(self, default: object) -> Point:
        if isinstance(default, tuple):
            return cast("Point", default)
        plane = cast("Plane", self.plane)
        return sum(plane.x_range) / 2, sum(plane.y_range) / 2

    def read(self, value: object) -> Point:
        return _read_point(self.label, value, cast("Plane", self.plane))

    def _plain_content(self, initial: Point) -> PlainValues:
        return {"plane": cast("Plane", self.plane).to_plain(), "initial": list(initial)}


@dataclass(frozen=True)
class PointsPicker(Control):
    """Up to `max_points` points of a plane, each added by a click; the point that changed last comes last.

    >>> plane = Plane((0.0, 1.0), (0.0, 1.0), torch.zeros(5, 2))
    >>> PointsPicker("x", plane, max_points=3).max_points
    3
    """

    kind: ClassVar[str] = "points_picker"
    plane: PerRun[Plane]
    max_points: PerRun[int] = 50

    def initial_value(self, default: object) -> tuple[Point, ...]:
        return cast("tuple[Point, ...]", default) if isinstance(default, tuple) else ()

    def read(self, value: object) -> tuple[Point, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{self.label} must be pairs of numbers")
        if len(value) > cast("int", self.max_points):
            raise ValueError(f"{self.label} must be at most {self.max_points}; got {len(value)}")
        return tuple(_read_point(self.label, point, cast("Plane", self.plane)) for point in value)

    def _plain_content(self, initial: tuple[Point, ...]) -> PlainValues:
        plane = cast("Plane", self.plane).to_plain()
        return {"plane": plane, "max_points": self.max_points, "initial": [list(point) for point in initial]}


@dataclass(frozen=True)
class TextInput(Control):
    """Text of at most `max_length` characters, evaluated while the user types.

    >>> TextInput("prompt").read("the cat")
    'the cat'
    """

    kind: ClassVar[str] = "text_input"
    max_length: PerRun[int] = 200

    def initial_value(self, default: object) -> str:
        return str(default)

    def read(self, value: object) -> str:
        if not isinstance(value, str):
            raise ValueError(f"{self.label} must be text")
        if len(value) > cast("int", self.max_length):
            raise ValueError(f"{self.label} must have at most {self.max_length} characters; got {len(value)}")
        return value

    def _plain_content(self, initial: str) -> PlainValues:
        return {"max_length": self.max_length, "initial": initial}


def _clip(value: Number, low: Number, high: Number) -> Number:
    return max(low, min(high, value))


def _resolve(limit: Callable[[TrainedRun], Value], trained: TrainedRun | None) -> Value:
    if trained is None:
        raise TypeError("a limit that depends on a run requires a probe with a run; got no run")
    return trained.compute_once(limit)


def _read_point(label: str, value: object, plane: Plane) -> Point:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"{label} must be two numbers")
    return _read_number(label, value[0], *plane.x_range), _read_number(label, value[1], *plane.y_range)


def _read_number(label: str, value: object, low: object, high: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= float_info.max:
        raise ValueError(f"{label} must be a number")
    least, largest = cast("float", low), cast("float", high)
    if not least <= value <= largest:
        raise ValueError(f"{label} must be between {least:g} and {largest:g}; got {value:g}")
    return float(value)
