"""Answers of probes: images, charts, values and graphs, independent of how they are displayed.

A new type of answer needs a class in this file, with its plain values, and a view in `lab/answers.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from parnassus.widgets.encoding import PlainValues, encode_image, encode_level_lines, join_images, list_or_empty


@dataclass(frozen=True)
class Answer(ABC):
    """A part of the output of a probe, with a title and an explanation; `kind` identifies its view in the lab.

    >>> Numbers("results", {"accuracy": 0.9}).title
    'results'
    """

    kind: ClassVar[str]
    title: str
    about: str = field(default="", kw_only=True)

    def to_plain(self) -> PlainValues:
        """The answer as plain values."""
        return {"kind": self.kind, "title": self.title, "about": self.about, **self._plain_content()}

    @abstractmethod
    def _plain_content(self) -> PlainValues: ...


@dataclass(frozen=True)
class Images(Answer):
    """Images with values in [0, 1] side by side, each with its caption.

    >>> Images("samples", torch.zeros(4, 1, 8, 8)).kind
    'images'
    """

    kind: ClassVar[str] = "images"
    images: Float[Tensor, "count channels height width"]
    captions: Sequence[str] = ()

    def _plain_content(self) -> PlainValues:
        missing = [""] * (len(self.images) - len(self.captions))
        return {"images": [encode_image(image) for image in self.images], "captions": [*self.captions, *missing]}


@dataclass(frozen=True)
class Animation(Answer):
    """Frames of one or more images each, with a caption per frame and a slider to choose the frame.

    >>> Animation("states", torch.zeros(3, 1, 1, 8, 8), ["0", "1", "2"]).kind
    'animation'
    """

    kind: ClassVar[str] = "animation"
    frames: Float[Tensor, "frame count channels height width"]
    captions: Sequence[str]

    def _plain_content(self) -> PlainValues:
        frames = [encode_image(join_images(frame)) for frame in self.frames]
        return {"frames": frames, "captions": list(self.captions)}


@dataclass(frozen=True)
class Bars(Answer):
    """A value for each name; the bar with index `marked` is highlighted.

    Estimates may have `errors`, drawn as error bars, and a `truth` to compare with, drawn as a line.

    >>> Bars("probabilities", ["a", "b"], torch.tensor([0.25, 0.75])).kind
    'bars'
    """

    kind: ClassVar[str] = "bars"
    names: Sequence[str]
    values: Float[Tensor, " count"]
    marked: int | None = None
    errors: Float[Tensor, " count"] | None = field(default=None, kw_only=True)
    truth: Float[Tensor, " count"] | None = field(default=None, kw_only=True)

    def _plain_content(self) -> PlainValues:
        values = {"values": self.values.tolist(), "errors": list_or_empty(self.errors)}
        return {"names": list(self.names), "marked": self.marked, "truth": list_or_empty(self.truth), **values}


@dataclass(frozen=True)
class Curves(Answer):
    """Lines over a common x axis; `marked` is the position of a vertical line.

    >>> Curves("x²", {"a": ([0.0, 1.0], [0.0, 1.0])}, "x", "y").kind
    'curves'
    """

    kind: ClassVar[str] = "curves"
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    x_label: str
    y_label: str
    log_y: bool = False
    marked: float | None = None

    def _plain_content(self) -> PlainValues:
        lines = {name: [list(map(float, x)), list(map(float, y))] for name, (x, y) in self.lines.items()}
        axes = {"x_label": self.x_label, "y_label": self.y_label, "log_y": self.log_y}
        return {"lines": lines, "marked": self.marked, **axes}


@dataclass(frozen=True)
class Trajectories(Answer):
    """Paths in the plane over contour lines of a function, whose values on the grid `x` × `y` are `levels`.

    Thin lines without names, arrows from a first to a second point, and points are drawn below the paths.

    >>> grid = torch.linspace(-1, 1, 5)
    >>> Trajectories("descent", {"Adam": torch.zeros(3, 2)}, grid, grid, torch.ones(5, 5)).kind
    'trajectories'
    """

    kind: ClassVar[str] = "trajectories"
    paths: Mapping[str, Float[Tensor, "step 2"]]
    x: Float[Tensor, " columns"]
    y: Float[Tensor, " rows"]
    levels: Float[Tensor, "rows columns"]
    thin_lines: Sequence[Float[Tensor, "_step 2"]] = field(default=(), kw_only=True)
    arrows: Float[Tensor, "arrow 2 2"] | None = field(default=None, kw_only=True)
    points: Float[Tensor, "point 2"] | None = field(default=None, kw_only=True)

    def _plain_content(self) -> PlainValues:
        return {
            "paths": {name: path.tolist() for name, path in self.paths.items()},
            "x_range": [float(self.x[0]), float(self.x[-1])],
            "y_range": [float(self.y[0]), float(self.y[-1])],
            "levels": encode_level_lines(self.levels),
            "thin_lines": [line.tolist() for line in self.thin_lines],
            "arrows": list_or_empty(self.arrows),
            "points": list_or_empty(self.points),
        }


@dataclass(frozen=True)
class Numbers(Answer):
    """Values by name.

    >>> Numbers("results", {"accuracy": 0.9}).values
    {'accuracy': 0.9}
    """

    kind: ClassVar[str] = "numbers"
    values: Mapping[str, float | str] = field(default_factory=dict)

    def _plain_content(self) -> PlainValues:
        return {"values": dict(self.values)}


@dataclass(frozen=True)
class GraphNode:
    """A node with its label and its value; neighbouring columns and rows are 1 apart, and y points upwards.

    >>> GraphNode("x", "2", 0.0, 0.0).label
    'x'
    """

    label: str
    value: str
    x: float
    y: float
    marked: bool = False


@dataclass(frozen=True)
class GraphEdge:
    """An edge between two nodes, given by their indices, with a label and the points that it passes through.

    >>> GraphEdge(0, 1, label="2").end
    1
    """

    start: int
    end: int
    label: str = ""
    waypoints: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True)
class Graph(Answer):
    """A directed graph, laid out from left to right.

    >>> Graph("a graph", [GraphNode("x", "2", 0.0, 0.0)], []).kind
    'graph'
    """

    kind: ClassVar[str] = "graph"
    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge]

    def _plain_content(self) -> PlainValues:
        edges = [{**asdict(edge), "waypoints": [list(point) for point in edge.waypoints]} for edge in self.edges]
        return {"nodes": [asdict(node) for node in self.nodes], "edges": edges}
