"""Answers: what a probe shows; plain pictures and numbers, to be drawn by whoever asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Images:
    """Pictures with values in [0, 1], side by side, each with its caption."""

    title: str
    images: Float[Tensor, "count channels height width"]
    captions: Sequence[str] = ()
    about: str = ""


@dataclass(frozen=True)
class Film:
    """Pictures that change together, frame after frame, with a caption a frame: a timeline to scrub through."""

    title: str
    frames: Float[Tensor, "frame count channels height width"]
    captions: Sequence[str]
    about: str = ""


@dataclass(frozen=True)
class Bars:
    """A number for each name; `marked` is the one to look at.

    Estimates have `errors`, drawn as whiskers, and may have the `truth` beside them, drawn as a stroke.
    """

    title: str
    names: Sequence[str]
    values: Float[Tensor, " count"]
    marked: int | None = None
    about: str = ""
    errors: Float[Tensor, " count"] | None = None
    truth: Float[Tensor, " count"] | None = None


@dataclass(frozen=True)
class Curves:
    """Lines over one axis, and places on it to look at."""

    title: str
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    x_label: str
    y_label: str
    log_y: bool = False
    marked: float | None = None
    about: str = ""


@dataclass(frozen=True)
class Path:
    """Ways through the plane, over level lines of a function: `levels` are its values on the grid `across` × `up`.

    Beneath the named ways may lie threads (thin lines without steps), arrows from a first to a second place, and dots.
    """

    title: str
    places: Mapping[str, Float[Tensor, "step 2"]]
    across: Float[Tensor, " columns"]
    up: Float[Tensor, " rows"]
    levels: Float[Tensor, "rows columns"]
    about: str = ""
    threads: Sequence[Float[Tensor, "_step 2"]] = ()
    arrows: Float[Tensor, "arrow 2 2"] | None = None
    dots: Float[Tensor, "dot 2"] | None = None


@dataclass(frozen=True)
class Numbers:
    """Numbers by name."""

    title: str
    values: Mapping[str, float | str] = field(default_factory=dict)
    about: str = ""


@dataclass(frozen=True)
class Box:
    """A place in a graph, with its name and what it holds; columns and rows are 1 apart, `up` counts upwards."""

    label: str
    value: str
    across: float
    up: float
    marked: bool = False


@dataclass(frozen=True)
class Arrow:
    """From one box to another, by their numbers, with words on it and the places it passes through."""

    start: int
    end: int
    label: str = ""
    through: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True)
class Graph:
    """Boxes from left to right, and arrows between them."""

    title: str
    boxes: Sequence[Box]
    arrows: Sequence[Arrow]
    about: str = ""


Answer: TypeAlias = Images | Film | Bars | Curves | Path | Numbers | Graph
