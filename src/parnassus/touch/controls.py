"""Controls: what a person may change about a probe, as the annotation of its argument.

    def rebuild(trained: Trained, components: Annotated[int, Whole("components kept", 1, features)] = 16) -> ...

A limit that depends on the run is a function of it. `read` turns what comes from outside into a value of the right
type inside the limits, or says in a sentence why it cannot.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from sys import float_info
from typing import TypeAlias, TypeVar, cast

import torch
from torch import Tensor

from parnassus.train.trained import Trained

Value = TypeVar("Value")
Known: TypeAlias = Value | Callable[[Trained], Value]


@dataclass(frozen=True)
class Whole:
    """A whole number between two limits: a slider."""

    about: str
    low: Known[int]
    high: Known[int]

    def settled(self, trained: Trained | None) -> "Whole":
        return replace(self, low=_known(self.low, trained), high=_known(self.high, trained))

    def start(self, default: object) -> int:
        """The value before anybody touched it: the default, brought inside the limits."""
        return max(cast("int", self.low), min(cast("int", self.high), cast("int", default)))

    def read(self, value: object) -> int:
        number = _number(self.about, value, self.low, self.high)
        if number != int(number):
            raise ValueError(f"{self.about} must be a whole number; got {number:g}")
        return int(number)


@dataclass(frozen=True)
class Real:
    """A number between two limits: a slider, by factors where `log`."""

    about: str
    low: Known[float]
    high: Known[float]
    log: bool = False

    def settled(self, trained: Trained | None) -> "Real":
        return replace(self, low=_known(self.low, trained), high=_known(self.high, trained))

    def start(self, default: object) -> float:
        return max(cast("float", self.low), min(cast("float", self.high), cast("float", default)))

    def read(self, value: object) -> float:
        return _number(self.about, value, self.low, self.high)


@dataclass(frozen=True)
class Pick:
    """One of several names, as its place in the list."""

    about: str
    names: Known[Sequence[str]]

    def settled(self, trained: Trained | None) -> "Pick":
        return replace(self, names=tuple(_known(self.names, trained)))

    def start(self, default: object) -> int:
        return max(0, min(len(cast("Sequence[str]", self.names)) - 1, cast("int", default)))

    def read(self, value: object) -> int:
        number = _number(self.about, value, 0, len(cast("Sequence[str]", self.names)) - 1)
        if number != int(number):
            raise ValueError(f"{self.about} must be one of the {len(cast('Sequence[str]', self.names))} choices")
        return int(number)


@dataclass(frozen=True)
class Drawing:
    """A grey picture drawn by hand: a tensor (height, width) with 0 for paper and 1 for ink.

    `examples` are pictures to start from, with their names.
    """

    about: str
    shape: Known[tuple[int, int]]
    examples: Known[Sequence[tuple[str, Tensor]]] = ()

    def settled(self, trained: Trained | None) -> "Drawing":
        return replace(self, shape=_known(self.shape, trained), examples=tuple(_known(self.examples, trained)))

    def start(self, default: object) -> Tensor:
        examples = cast("Sequence[tuple[str, Tensor]]", self.examples)
        if isinstance(default, Tensor):
            return default
        return examples[0][1] if examples else torch.zeros(cast("tuple[int, int]", self.shape))

    def read(self, value: object) -> Tensor:
        height, width = cast("tuple[int, int]", self.shape)
        if not isinstance(value, list | tuple) or len(value) != height * width:
            raise ValueError(f"{self.about} must be {height} × {width} grey values, row by row")
        if not all(isinstance(grey, int | float) and not isinstance(grey, bool) and 0 <= grey <= 1 for grey in value):
            raise ValueError(f"{self.about} must have grey values between 0 and 1")
        return torch.tensor(value, dtype=torch.float32).view(height, width)


@dataclass(frozen=True)
class Plane:
    """A part of the plane, and what lies in it: points (n, 2), by class where they have one."""

    across: tuple[float, float]
    up: tuple[float, float]
    points: Tensor
    labels: Tensor | None = None
    classes: Sequence[str] = ()
    across_name: str = ""
    up_name: str = ""


@dataclass(frozen=True)
class Point:
    """A place in a plane, under the pointer."""

    about: str
    plane: Known[Plane]

    def settled(self, trained: Trained | None) -> "Point":
        return replace(self, plane=_known(self.plane, trained))

    def start(self, default: object) -> tuple[float, float]:
        plane = cast("Plane", self.plane)
        if isinstance(default, tuple):
            return cast("tuple[float, float]", default)
        return sum(plane.across) / 2, sum(plane.up) / 2

    def read(self, value: object) -> tuple[float, float]:
        plane = cast("Plane", self.plane)
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise ValueError(f"{self.about} must be two numbers")
        across, up = value
        return _number(self.about, across, *plane.across), _number(self.about, up, *plane.up)


@dataclass(frozen=True)
class Points:
    """Places in a plane, as many as a person clicks up to `most`: pairs, the one touched last at the end."""

    about: str
    plane: Known[Plane]
    most: Known[int] = 50

    def settled(self, trained: Trained | None) -> "Points":
        return replace(self, plane=_known(self.plane, trained), most=_known(self.most, trained))

    def start(self, default: object) -> tuple[tuple[float, float], ...]:
        return cast("tuple[tuple[float, float], ...]", default) if isinstance(default, tuple) else ()

    def read(self, value: object) -> tuple[tuple[float, float], ...]:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{self.about} must be pairs of numbers")
        if len(value) > cast("int", self.most):
            raise ValueError(f"{self.about} must be at most {self.most}; got {len(value)}")
        one = Point(self.about, self.plane)
        return tuple(one.read(place) for place in value)


@dataclass(frozen=True)
class Typed:
    """Words that a person types, heard letter by letter."""

    about: str
    most: Known[int] = 200  # letters

    def settled(self, trained: Trained | None) -> "Typed":
        return replace(self, most=_known(self.most, trained))

    def start(self, default: object) -> str:
        return str(default)

    def read(self, value: object) -> str:
        if not isinstance(value, str):
            raise ValueError(f"{self.about} must be words")
        if len(value) > cast("int", self.most):
            raise ValueError(f"{self.about} must have at most {self.most} letters; got {len(value)}")
        return value


Control: TypeAlias = Whole | Real | Pick | Drawing | Point | Points | Typed


def _known(value: Known[Value], trained: Trained | None) -> Value:
    if not callable(value):
        return value
    if trained is None:
        raise TypeError("a limit that depends on a run needs a probe of a run")
    return trained.once(value)


def _number(about: str, value: object, low: object, high: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= float_info.max:
        raise ValueError(f"{about} must be a number")
    least, most = cast("float", low), cast("float", high)
    if not least <= value <= most:
        raise ValueError(f"{about} must be between {least:g} and {most:g}; got {value:g}")
    return float(value)
