"""Two neurons, one sum: backpropagation with every number on the graph (book sec. 2.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from parnassus.autodiff import (
    Diagram,
    Symbol,
    Variable,
    all_paths,
    cos,
    diagram,
    difference_gradient,
    differentiate,
    edge_count,
    edges_into,
    pull_back,
    relu,
    sin,
    slope_by_paths,
    squared_error,
    total,
    two_neurons,
)
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("B2.1-3", "B2.1-4", "B2.1-6", "Z5.7")
expected = {
    "paths_minus_sweep": at_most(1e-12, "largest difference between the two ways to a slope, relative"),
    "paths": between(1_000, 1_100, "paths through ten forks in a row"),
    "edges": between(40, 40, "edges of the same graph, all that a sweep crosses"),
    "best_width": between(1e-7, 1e-4, "width h at which a central difference comes nearest"),
    "best_difference_error": between(1e-13, 1e-8, "and how near it comes, relative"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {}, "gpu": {}}

WIDE, HIGH = 0.3, 0.3  # half the size of a box; columns and rows are 1 apart


@dataclass(frozen=True)
class Experiment:
    x: float = 0.7  # the input
    w1: float = 1.3  # weight of the first neuron
    w2: float = -0.8  # weight of the second neuron
    forks: int = 10  # forks in a row for the count of paths

    def __call__(self, run: Run) -> dict[str, float]:
        net = two_neurons(Variable(self.x), Variable(self.w1), Variable(self.w2))
        run.figure(
            "the graph",
            draw(diagram(net.y, names=net.names, value=number_of, edge=lambda _node, _place: "")),
            "The forward pass leaves a number at every node (book fig. 2.1).",
        )
        run.figure(
            "local slopes",
            draw(diagram(net.y, names=net.names, value=number_of, edge=local_slope)),
            "The same graph with the local slope on each edge, ∂end/∂start (book fig. 2.2). A derivative multiplies "
            "the slopes along a path and adds over the paths.",
        )
        run.table(
            "three slopes", self.slopes(net.y, {"x": net.x, "w₁": net.w1, "w₂": net.w2}), "By all paths, and by sweep."
        )

        run.figure(
            "what a forward pass keeps",
            draw(kept_by_two_layers()),
            "A penalised two-layer network on 32 examples: each box is an array that stays in memory until the way "
            "back has used it (Zhao sec. 5).",
        )
        x = Symbol("x")
        y = x * sin(x)
        (slope,) = differentiate(y, [x])
        run.figure(
            "a graph made from a graph",
            draw(diagram(slope, names={x: "x"}, value=lambda _node: "", edge=lambda _node, _place: "")),
            "Symbol-to-symbol: the derivative of x sin x as the engine builds it, 1 · sin x + (1 · x) · cos x; the 1 "
            "is where the sweep starts. It holds no number yet and can be differentiated again.",
        )

        depths = range(1, self.forks + 1)
        chains = [chain(Variable(0.4), depth) for depth in depths]
        counted = [len(list(all_paths(start, end))) for start, end in chains]
        crossed = [edge_count(end) for _, end in chains]
        run.figure(
            "paths and edges",
            curves(
                {"paths": (depths, counted), "edges": (depths, crossed)},
                x_label="forks in a row",
                y_label="how many",
                log_y=True,
            ),
            "Every fork doubles the paths and adds four edges; a backward sweep crosses each edge once.",
        )
        start, end = chains[-1]
        (swept,) = pull_back(end, [start])
        by_paths = slope_by_paths(start, end)

        widths = 10.0 ** np.arange(-14, 0.25, 0.25)
        errors = [self.difference_error(width) for width in widths]
        best = int(np.argmin(errors))
        run.figure(
            "differences can only come near",
            curves(
                {"error of ∂y/∂x": (np.log10(widths), np.maximum(errors, 1e-17))},
                x_label="log₁₀ of the width h",
                y_label="relative error",
                log_y=True,
            ),
            "A central difference errs by h² on the right and by rounding / h on the left. The sweep has neither.",
        )
        return {
            "paths_minus_sweep": abs(by_paths / float(swept) - 1),
            "paths": counted[-1],
            "edges": crossed[-1],
            "best_width": float(widths[best]),
            "best_difference_error": max(errors[best], 1e-13),
        }

    def slopes(self, y: Variable, ends: dict[str, Variable]) -> list[dict[str, str | float]]:
        """A row for each input: its paths, their sum and the sweep."""
        swept = pull_back(y, list(ends.values()))
        return [
            {
                "∂y/∂…": name,
                "paths": " + ".join(
                    " · ".join(f"{edge.slope:.4g}" for edge in reversed(way)) for way in all_paths(end, y)
                ),
                "sum": slope_by_paths(end, y),
                "sweep": float(slope),
            }
            for (name, end), slope in zip(ends.items(), swept, strict=True)
        ]

    def difference_error(self, width: float) -> float:
        """How far a central difference of this width is from ∂y/∂x, relative."""

        def y(x: np.ndarray) -> np.ndarray:
            return two_neurons(Variable(x), Variable(self.w1), Variable(self.w2)).y.value

        net = two_neurons(Variable(self.x), Variable(self.w1), Variable(self.w2))
        exact = float(pull_back(net.y, [net.x])[0])
        return abs(float(difference_gradient(y, np.array(self.x), width=width)) / exact - 1)


def chain(start: Variable, forks: int) -> tuple[Variable, Variable]:
    """Forks in a row, x ← sin x + cos x: two ways at each."""
    end = start
    for _ in range(forks):
        end = sin(end) + cos(end)
    return start, end


def kept_by_two_layers() -> Diagram:
    """J = l(W₂ φ(W₁ x)) + (λ/2) (‖W₁‖² + ‖W₂‖²), every array with its shape."""
    x, w1, w2 = Variable(np.ones((32, 4))), Variable(np.ones((4, 8))), Variable(np.ones((8, 3)))
    z = x @ w1
    h = relu(z)
    o = h @ w2
    loss = squared_error(o, np.zeros((32, 3)))
    squares = total(w1 * w1) + total(w2 * w2)
    penalty = squares * 0.05
    end = loss + penalty
    names = {
        x: "x",
        w1: "W₁",
        w2: "W₂",
        z: "z = W₁x",
        h: "h = φ(z)",
        o: "o = W₂h",
        loss: "l",
        penalty: "× λ/2",
        end: "J",
    }
    return diagram(end, names=names, value=shape_of_node, edge=lambda _node, _place: "")


def number_of(node: Variable) -> str:
    return f"{float(node.value):.4g}"


def shape_of_node(node: Variable) -> str:
    return " × ".join(map(str, node.shape)) or "1"


def local_slope(node: Variable, place: int) -> str:
    return f"{edges_into(node)[place].slope:.4g}"


def draw(graph: Diagram) -> "Figure":
    """Boxes from left to right, arrows between them with their words above."""
    across = [spot.across for spot in graph.spots]
    up = [spot.up for spot in graph.spots] + [height for link in graph.links for _, height in link.through]
    columns, rows = max(across) + 1, max(up) - min(up) + 1
    figure, axes = subplots(size=(min(11.0, 1.95 * columns), 0.95 * rows + 0.3))
    ax = axes[0, 0]
    ax.set_axis_off()
    ax.set(xlim=(-0.45, columns - 0.55), ylim=(min(up) - 0.55, max(up) + 0.55))
    for link in graph.links:
        start, end = graph.spots[link.start], graph.spots[link.end]
        arrow(ax, [(start.across + WIDE, start.up), *link.through, (end.across - WIDE, end.up)], link.label)
    for spot in graph.spots:
        box(ax, spot.across, spot.up, colour=PALETTE[1] if spot.is_input else PALETTE[0])
        ax.text(spot.across, spot.up + (0.1 if spot.value else 0), spot.label, ha="center", va="center")
        ax.text(spot.across, spot.up - 0.16, spot.value, ha="center", va="center", fontsize=8.5, color=FAINT)
    return figure


def box(ax: "Axes", across: float, up: float, *, colour: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = "round,pad=0,rounding_size=0.08"
    corner = across - WIDE, up - HIGH
    ax.add_patch(FancyBboxPatch(corner, 2 * WIDE, 2 * HIGH, style, facecolor="none", edgecolor=colour, lw=1.6))


def arrow(ax: "Axes", places: Sequence[tuple[float, float]], label: str) -> None:
    """A smooth line through the places, with a head at its end."""
    for (left, low), (right, high) in pairwise(places):
        bend = np.linspace(0, 1, 30)
        ax.plot(left + (right - left) * bend, low + (high - low) * bend**2 * (3 - 2 * bend), color=INK, lw=1, zorder=1)
    (left, low), (right, high) = places[-2:]
    ax.annotate(
        "", (right, high), (right - 0.04, high), arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1}, zorder=1
    )
    rises, level = high > low, abs(high - low) < 0.05
    side, shift = ("center", 0.05) if level else ("left", -0.03 if rises else 0.03)  # where no other edge comes along
    upright = "top" if rises and not level else "bottom"
    middle = (left + right) / 2, (low + high) / 2 + shift
    ax.text(*middle, label, ha=side, va=upright, fontsize=9, color=PALETTE[2])
