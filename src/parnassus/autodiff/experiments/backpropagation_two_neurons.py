"""Backpropagation on two neurons: every value, local derivative and path of the graph (book sec. 2.1)."""

from dataclasses import dataclass

import numpy as np

from parnassus.autodiff import (
    GraphLayout,
    Symbol,
    Variable,
    all_paths,
    cos,
    count_edges,
    derivative_by_paths,
    differentiate,
    gradients,
    incoming_edges,
    layout_graph,
    numerical_gradient,
    relu,
    sin,
    squared_error,
    total,
    two_neuron_network,
)
from parnassus.autodiff.figures import plot_graph, shape_label
from parnassus.report import curves
from parnassus.train import Positive, Run, at_most, between

covers = ("B2.1-3", "B2.1-4", "B2.1-6", "Z5.7")
expected = {
    "path_sum_error": at_most(1e-12, "relative difference between the sum over paths and reverse accumulation"),
    "paths": between(1_000, 1_100, "paths through ten consecutive forks"),
    "edges": between(40, 40, "edges of the graph of ten forks, each visited once by a backward pass"),
    "best_step_size": between(1e-7, 1e-4, "step size h of the most accurate central difference"),
    "central_difference_error": between(1e-13, 1e-8, "relative error of the most accurate central difference"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    x: float = 0.7  # input
    w1: float = 1.3  # weight of the first neuron
    w2: float = -0.8  # weight of the second neuron
    num_forks: Positive[int] = 10  # consecutive forks of the graph whose paths are counted

    def __call__(self, run: Run) -> dict[str, float]:
        net = two_neuron_network(Variable(self.x), Variable(self.w1), Variable(self.w2))
        run.figure(
            "forward pass",
            plot_graph(layout_graph(net.y, names=net.names, value=value_label, edge=lambda _node, _index: "")),
            "The forward pass computes the value of every node (book fig. 2.1).",
        )
        run.figure(
            "local derivatives",
            plot_graph(layout_graph(net.y, names=net.names, value=value_label, edge=local_derivative)),
            "The same graph with the local derivative ∂end/∂start on each edge (book fig. 2.2). A derivative is the "
            "sum over paths of the products of local derivatives.",
        )
        run.table(
            "derivatives by paths",
            self.derivatives(net.y, {"x": net.x, "w₁": net.w1, "w₂": net.w2}),
            "∂y/∂x, ∂y/∂w₁ and ∂y/∂w₂ by summing over all paths and by reverse accumulation.",
        )

        run.figure(
            "values stored by a forward pass",
            plot_graph(layout_two_layer_network()),
            "A two-layer network with weight penalty on 32 examples: each box is an array that stays in memory until "
            "the backward pass has used it (Zhao sec. 5).",
        )
        x = Symbol("x")
        y = x * sin(x)
        (derivative,) = differentiate(y, [x])
        run.figure(
            "graph of a derivative",
            plot_graph(layout_graph(derivative, names={x: "x"}, value=lambda _node: "", edge=lambda _node, _index: "")),
            "Symbol-to-symbol differentiation: the derivative of x sin x as built by the engine, 1 · sin x + (1 · x) · "
            "cos x, where 1 is the seed. It can be evaluated later or differentiated again.",
        )

        lengths = range(1, self.num_forks + 1)
        chains = [chain_of_forks(Variable(0.4), length) for length in lengths]
        num_paths = [len(list(all_paths(start, end))) for start, end in chains]
        num_edges = [count_edges(end) for _, end in chains]
        run.figure(
            "paths and edges",
            curves(
                {"paths": (lengths, num_paths), "edges": (lengths, num_edges)},
                x_label="number of forks",
                y_label="count",
                log_y=True,
            ),
            "Every fork doubles the number of paths and adds four edges; a backward pass visits each edge once.",
        )
        start, end = chains[-1]
        (accumulated,) = gradients(end, [start])
        by_paths = derivative_by_paths(start, end)

        step_sizes = 10.0 ** np.arange(-14, 0.25, 0.25)
        errors = [self.difference_error(step_size) for step_size in step_sizes]
        best = int(np.argmin(errors))
        run.figure(
            "error of central differences",
            curves(
                {"error of ∂y/∂x": (np.log10(step_sizes), np.maximum(errors, 1e-17))},
                x_label="log₁₀ of the step size h",
                y_label="relative error",
                log_y=True,
            ),
            "The error of a central difference is O(h²) for large h and O(rounding / h) for small h. Backpropagation "
            "has neither error.",
        )
        return {
            "path_sum_error": abs(by_paths / float(accumulated) - 1),
            "paths": num_paths[-1],
            "edges": num_edges[-1],
            "best_step_size": float(step_sizes[best]),
            "central_difference_error": max(errors[best], 1e-13),
        }

    def derivatives(self, y: Variable, inputs: dict[str, Variable]) -> list[dict[str, str | float]]:
        """A row for each input: its paths, their sum and the result of reverse accumulation."""
        accumulated = gradients(y, list(inputs.values()))
        return [
            {
                "∂y/∂…": name,
                "paths": " + ".join(
                    " · ".join(f"{edge.derivative:.4g}" for edge in reversed(path)) for path in all_paths(node, y)
                ),
                "sum over paths": derivative_by_paths(node, y),
                "reverse accumulation": float(derivative),
            }
            for (name, node), derivative in zip(inputs.items(), accumulated, strict=True)
        ]

    def difference_error(self, step_size: float) -> float:
        """Relative error of a central difference for ∂y/∂x."""

        def y(x: np.ndarray) -> np.ndarray:
            return two_neuron_network(Variable(x), Variable(self.w1), Variable(self.w2)).y.value

        net = two_neuron_network(Variable(self.x), Variable(self.w1), Variable(self.w2))
        exact = float(gradients(net.y, [net.x])[0])
        return abs(float(numerical_gradient(y, np.array(self.x), step_size=step_size)) / exact - 1)


def chain_of_forks(start: Variable, length: int) -> tuple[Variable, Variable]:
    """First and last node of `length` steps x ← sin x + cos x, each with two paths."""
    end = start
    for _ in range(length):
        end = sin(end) + cos(end)
    return start, end


def layout_two_layer_network() -> GraphLayout:
    """J = l(W₂ φ(W₁ x)) + (λ/2) (‖W₁‖² + ‖W₂‖²), every array with its shape."""
    x, w1, w2 = Variable(np.ones((32, 4))), Variable(np.ones((4, 8))), Variable(np.ones((8, 3)))
    z = x @ w1
    h = relu(z)
    o = h @ w2
    loss = squared_error(o, np.zeros((32, 3)))
    squares = total(w1 * w1) + total(w2 * w2)
    penalty = squares * 0.05
    objective = loss + penalty
    names = {
        x: "x",
        w1: "W₁",
        w2: "W₂",
        z: "z = W₁x",
        h: "h = φ(z)",
        o: "o = W₂h",
        loss: "l",
        penalty: "× λ/2",
        objective: "J",
    }
    return layout_graph(objective, names=names, value=shape_label, edge=lambda _node, _index: "")


def value_label(node: Variable) -> str:
    return f"{float(node.value):.4g}"


def local_derivative(node: Variable, index: int) -> str:
    return f"{incoming_edges(node)[index].derivative:.4g}"
