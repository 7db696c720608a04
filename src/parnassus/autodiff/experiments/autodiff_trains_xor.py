"""Our own engine trains a network on XOR, by tape and by graph, beside torch (book sec. 2.1)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import nn

from parnassus.autodiff import (
    Network,
    Program,
    Symbol,
    Variable,
    dense_network,
    diagram,
    differentiate,
    squared_error,
    tanh,
    torch_twin,
)
from parnassus.autodiff.experiments.backpropagation_on_two_neurons import draw, shape_of_node
from parnassus.data.toy import xor
from parnassus.report import curves, surface
from parnassus.train import Run, at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B2.1-5", "B2.1-6", "Z5.8")
expected = {
    "xor_error": at_most(1e-3, "squared error of the trained network"),
    "gap_to_torch": at_most(1e-12, "largest difference between a loss of the tape and torch's"),
    "gap_to_graph": at_most(1e-12, "the same between tape and graph"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 100}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    hidden: int = 8  # hidden units
    steps: int = 1_200  # gradient steps
    rate: float = 0.05  # learning rate

    def __call__(self, run: Run) -> dict[str, float]:
        corners = xor()
        assert corners.y is not None
        x, y = corners.x.double().numpy(), corners.y.double().numpy()[:, None]
        sizes = (2, self.hidden, 1)
        by_tape, by_graph = (Network(sizes, tanh, np.random.default_rng(run.seed)) for _ in range(2))
        by_torch = torch_twin(by_tape, nn.Tanh())
        optimizer = torch.optim.SGD(by_torch.parameters(), lr=self.rate)
        program = gradient_program(by_graph, x, y)
        for name, thing in (("tape", by_tape), ("graph", by_graph), ("torch", by_torch)):
            run.keep(name, thing)

        inputs, targets = torch.from_numpy(x), torch.from_numpy(y)
        for step, _ in run.steps(self.steps):
            loss = by_tape.descend(x, lambda outputs: squared_error(outputs, y), rate=self.rate)
            graph_loss, *slopes = program(*by_graph.weights)
            by_graph.weights = [w - self.rate * slope for w, slope in zip(by_graph.weights, slopes, strict=True)]
            torch_loss = (by_torch(inputs) - targets).square().sum(1).mean()
            run.update(optimizer, torch_loss)
            gaps = {"gap/torch": abs(loss - torch_loss.item()), "gap/graph": abs(loss - float(graph_loss))}
            run.log(step, loss=loss, **gaps)

        steps, losses = run.curve("loss")
        gap_to_torch, gap_to_graph = run.curve("gap/torch")[1], run.curve("gap/graph")[1]
        shown = {"loss": losses, "tape and torch apart": gap_to_torch, "tape and graph apart": gap_to_graph}
        run.figure(
            "three engines, one loss",
            curves(
                {name: (steps, [max(number, 1e-19) for number in line]) for name, line in shown.items()},
                x_label="step",
                y_label="squared error",
                log_y=True,
            ),
            "Tape, graph and torch start alike and stay alike. Torch adds in another order, so it differs by rounding; "
            "tape and graph do the same arithmetic (10⁻¹⁹ stands for no difference at all).",
        )
        line = np.linspace(0, 1, 61)
        square = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
        run.figure(
            "the function found",
            surface(by_tape(square).reshape(61, 61), extent=(0, 1, 0, 1), points=np.concatenate([x, y], 1)),
            f"The trained 2-{self.hidden}-1 network over the unit square; dots are the four values of XOR.",
        )
        run.figure(
            "the tape of one step",
            tape_of_a_step(by_tape, x, y),
            "What the tape remembers of one forward pass, with the shape of each array. The backward sweep walks it "
            "from right to left.",
        )
        run.note(
            "what to try",
            "At a rate of 0.3 the steps overshoot for a while, and on that stretch small differences grow: a nudge of "
            "10⁻¹⁵ to one weight ends between 10⁻¹⁰ and 10⁻³ (seeds 0 to 3), where at 0.05 it stays at 10⁻¹⁵. Rounding "
            "is such a nudge: torch and the tape go different ways, while tape and graph agree to the last bit.",
        )
        return {
            "xor_error": float(squared_error(by_tape(x), y)),
            "gap_to_torch": max(gap_to_torch),
            "gap_to_graph": max(gap_to_graph),
        }


def gradient_program(network: Network, x: np.ndarray, y: np.ndarray) -> Program:
    """Loss and gradients as functions of the weights: the graph is built and differentiated once, before any step."""
    weights = [Symbol(f"θ{place}", weight.shape) for place, weight in enumerate(network.weights)]
    loss = squared_error(cast("Symbol", dense_network(x, weights, tanh)), y)
    return Program(weights, [loss, *differentiate(loss, weights)])


def tape_of_a_step(network: Network, x: np.ndarray, y: np.ndarray) -> "Figure":
    inputs, weights = Variable(x), [Variable(weight) for weight in network.weights]
    loss = squared_error(dense_network(inputs, weights, tanh), y)
    names = dict(zip([inputs, *weights], ["x", "W₁", "b₁", "W₂", "b₂"], strict=True))
    return draw(diagram(loss, names=names, value=shape_of_node, edge=lambda _node, _place: ""))
