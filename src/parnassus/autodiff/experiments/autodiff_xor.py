"""Train a network on XOR by tape and by graph, with the same loss curve as torch autograd (book sec. 2.1)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import nn

from parnassus.autodiff import (
    DenseNetwork,
    Program,
    Symbol,
    Variable,
    dense_network,
    differentiate,
    layout_graph,
    squared_error,
    tanh,
    to_torch,
)
from parnassus.autodiff.figures import plot_graph, shape_label
from parnassus.data.built_in.toy import xor
from parnassus.report import curves, surface
from parnassus.train import Positive, Run, at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B2.1-5", "B2.1-6", "Z5.8")
expected = {
    "xor_error": at_most(1e-3, "squared error of the trained network"),
    "gap_to_torch": at_most(1e-12, "largest difference between the losses of tape and torch"),
    "gap_to_graph": at_most(1e-12, "largest difference between the losses of tape and graph"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 100}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    width: Positive[int] = 8  # hidden units
    steps: Positive[int] = 1_200  # gradient steps
    learning_rate: Positive[float] = 0.05  # learning rate of gradient descent

    def __call__(self, run: Run) -> dict[str, float]:
        corners = xor()
        assert corners.y is not None
        x, y = corners.x.double().numpy(), corners.y.double().numpy()[:, None]
        sizes = (2, self.width, 1)
        by_tape, by_graph = (DenseNetwork(sizes, tanh, np.random.default_rng(run.seed)) for _ in range(2))
        by_torch = to_torch(by_tape, nn.Tanh())
        optimizer = torch.optim.SGD(by_torch.parameters(), lr=self.learning_rate)
        program = gradient_program(by_graph, x, y)
        for name, network in (("tape", by_tape), ("graph", by_graph), ("torch", by_torch)):
            run.keep(name, network)

        inputs, targets = torch.from_numpy(x), torch.from_numpy(y)
        for step, _ in run.steps(self.steps):
            loss = by_tape.gradient_step(x, lambda outputs: squared_error(outputs, y), learning_rate=self.learning_rate)
            graph_loss, *gradients = program(*by_graph.weights)
            by_graph.weights = [w - self.learning_rate * g for w, g in zip(by_graph.weights, gradients, strict=True)]
            torch_loss = (by_torch(inputs) - targets).square().sum(1).mean()
            run.update(optimizer, torch_loss)
            gaps = {"gap/torch": abs(loss - torch_loss.item()), "gap/graph": abs(loss - float(graph_loss))}
            run.log(step, loss=loss, **gaps)

        steps, losses = run.curve("loss")
        gap_to_torch, gap_to_graph = run.curve("gap/torch")[1], run.curve("gap/graph")[1]
        lines = {
            "loss": losses,
            "difference of tape and torch": gap_to_torch,
            "difference of tape and graph": gap_to_graph,
        }
        run.figure(
            "loss by engine",
            curves(
                {name: (steps, [max(value, 1e-19) for value in line]) for name, line in lines.items()},
                x_label="step",
                y_label="squared error",
                log_y=True,
            ),
            "Tape, graph and torch start from the same weights, and their losses coincide up to rounding. Torch sums "
            "in another order; tape and graph perform the same arithmetic (differences of 0 are plotted at 10⁻¹⁹).",
        )
        line = np.linspace(0, 1, 61)
        square = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
        run.figure(
            "learned function",
            surface(by_tape(square).reshape(61, 61), extent=(0, 1, 0, 1), points=np.concatenate([x, y], 1)),
            f"Output of the trained 2-{self.width}-1 network on the unit square; points are the four examples of XOR.",
        )
        run.figure(
            "tape of one step",
            plot_tape(by_tape, x, y),
            "The tape of one forward pass, with the shape of each array. The backward pass visits it from right to "
            "left.",
        )
        run.note(
            "effect of the learning rate",
            "At a learning rate of 0.3 the loss overshoots for a while and small differences grow: a perturbation of "
            "10⁻¹⁵ of one weight ends between 10⁻¹⁰ and 10⁻³ (seeds 0 to 3), whereas at 0.05 it stays at 10⁻¹⁵. "
            "Rounding acts as such a perturbation: torch and the tape diverge, while tape and graph agree bit for bit.",
        )
        return {
            "xor_error": float(squared_error(by_tape(x), y)),
            "gap_to_torch": max(gap_to_torch),
            "gap_to_graph": max(gap_to_graph),
        }


def gradient_program(network: DenseNetwork, x: np.ndarray, y: np.ndarray) -> Program:
    """Loss and gradients as functions of the weights; the graph is built and differentiated once, before training."""
    weights = [Symbol(f"θ{index}", weight.shape) for index, weight in enumerate(network.weights)]
    loss = squared_error(cast("Symbol", dense_network(x, weights, tanh)), y)
    return Program(weights, [loss, *differentiate(loss, weights)])


def plot_tape(network: DenseNetwork, x: np.ndarray, y: np.ndarray) -> "Figure":
    """The computation graph of the loss of one forward pass."""
    inputs, weights = Variable(x), [Variable(weight) for weight in network.weights]
    loss = squared_error(dense_network(inputs, weights, tanh), y)
    names = dict(zip([inputs, *weights], ["x", "W₁", "b₁", "W₂", "b₂"], strict=True))
    return plot_graph(layout_graph(loss, names=names, value=shape_label, edge=lambda _node, _index: ""))
