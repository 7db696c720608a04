"""MLP on XOR: one hidden layer fits it, no affine function does (book sec. 1.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.optim import SGD

from parnassus.data.built_in.toy import xor
from parnassus.layers import least_squares, linear_model, mlp, relu, tanh
from parnassus.losses import mean_squared_error
from parnassus.report import FAINT, PALETTE, bar_chart, draw_network, subplots, surface
from parnassus.train import Positive, Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("B1.2-4", "B1.2-5", "B1.2-6", "B1.2-7", "B1.2-15")
expected = {
    "affine_error": between(0.2499, 0.2501, "mean squared error of the best affine function"),
    "network_error": at_most(1e-3, "mean squared error of a network with a hidden layer"),
    "success_rate_2_units": between(0.03, 0.4, "fraction of random initialisations that solve XOR with 2 hidden units"),
    "success_rate_8_units": at_least(0.8, "fraction of random initialisations that solve XOR with 8 hidden units"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 150, "num_networks": 10}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    width: Positive[int] = 4  # hidden units of the plotted network
    steps: Positive[int] = 2_000  # gradient steps per network
    learning_rate: Positive[float] = 0.3  # learning rate of gradient descent
    num_networks: Positive[int] = 200  # networks per hidden size for the success rate

    def __call__(self, run: Run) -> dict[str, float]:
        corners = xor()
        assert corners.y is not None
        x, y = corners.x.to(run.device), corners.y.float().to(run.device)
        run.figure("data", plot_corners(x, y), "XOR: circles have value 0, crosses value 1 (book fig. 1.1).")

        w, b = least_squares(x, y)
        affine_error = mean_squared_error(linear_model(x, w, b), y)

        network, optimizer = run.prepare(mlp((2, self.width, 1), activation=tanh), partial(SGD, lr=self.learning_rate))
        for step, _ in run.steps(self.steps):
            loss = mean_squared_error(network(x)[:, 0], y)
            run.update(optimizer, loss)
            run.log(step, loss=loss.detach())
        with torch.no_grad():
            network_error = mean_squared_error(network(x)[:, 0], y)
            outputs = network(unit_square_grid(61).to(run.device))[:, 0].reshape(61, 61)
        targets = torch.cat([x, y[:, None]], 1)
        run.figure(
            "fitted function",
            add_axis_labels(surface(outputs, extent=(0, 1, 0, 1), points=targets)),
            f"The trained 2-{self.width}-1 tanh network on the unit square; dots are the four targets (book fig. 1.2).",
        )
        run.figure(
            "biological and artificial neurons",
            plot_neuron_and_network((2, self.width, 1)),
            "A biological neuron collects signals through its dendrites and transmits them along its axon; a layered "
            "network of artificial neurons (book fig. 1.4).",
        )

        sizes = (1, 2, 3, 4, 8)
        solved = {f"{hidden} hidden": self.success_rate(hidden, x.cpu(), y.cpu()) for hidden in sizes}
        run.figure(
            "success rate of training",
            bar_chart(solved, x_label=f"fraction of {self.num_networks} ReLU networks with error below 0.01"),
            "Two ReLU units can represent XOR exactly, but from most initialisations gradient descent does not find "
            "the solution: a unit is dead or has a wrong sign. More hidden units make training reliable.",
        )
        run.note(
            "summary",
            f"The best affine function is the constant ½, with mean squared error {float(affine_error):.2f}; that of "
            f"the network is {float(network_error):.1e}.",
        )
        return {
            "affine_error": float(affine_error),
            "network_error": float(network_error),
            "success_rate_2_units": solved["2 hidden"],
            "success_rate_8_units": solved["8 hidden"],
        }

    def success_rate(self, hidden: int, x: Tensor, y: Tensor) -> float:
        """Fraction of ReLU networks with independent initialisations that fit XOR; all are trained in parallel."""
        networks = [mlp((2, hidden, 1), activation=relu) for _ in range(self.num_networks)]
        weights, _ = stack_module_state(networks)

        def loss(parameters: dict[str, Tensor]) -> Tensor:
            return mean_squared_error(functional_call(networks[0], parameters, (x,))[:, 0], y)

        for _ in range(self.steps):
            gradients = vmap(grad(loss))(weights)
            weights = {
                name: (weight - self.learning_rate * gradients[name]).detach() for name, weight in weights.items()
            }
        return float((vmap(loss)(weights) < 0.01).float().mean())


def unit_square_grid(num_points: int) -> Tensor:
    """Grid points of the unit square, rows in ascending order of the second coordinate."""
    line = torch.linspace(0, 1, num_points)
    second, first = torch.meshgrid(line, line, indexing="ij")
    return torch.stack([first, second], -1).reshape(-1, 2)


def plot_corners(x: Tensor, y: Tensor) -> "Figure":
    figure, axes = subplots(size=(4.2, 4.0))
    ax, x, y = axes[0, 0], x.cpu(), y.cpu()
    zero, one = x[y == 0], x[y == 1]
    ax.plot(zero[:, 0], zero[:, 1], color=FAINT, linestyle=":")
    ax.plot(one[:, 0], one[:, 1], color=FAINT, linestyle=":")
    ax.scatter(zero[:, 0], zero[:, 1], s=170, facecolors="none", edgecolors=PALETTE[0], linewidths=2.5, label="0")
    ax.scatter(one[:, 0], one[:, 1], s=170, marker="x", color=PALETTE[1], linewidths=2.5, label="1")
    ax.set(xlabel="x₁", ylabel="x₂", xticks=[0, 1], yticks=[0, 1], xlim=(-0.25, 1.25), ylim=(-0.25, 1.25))
    ax.legend(loc="center right", title="value")
    return figure


def add_axis_labels(figure: "Figure") -> "Figure":
    figure.axes[0].set(xlabel="x₁", ylabel="x₂", zlabel="output")
    return figure


def plot_neuron_and_network(sizes: Sequence[int]) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    for ax in axes[0]:
        ax.set_axis_off()
        ax.set_aspect("equal")
    draw_neuron(axes[0, 0])
    draw_network(axes[0, 1], sizes)
    return figure


def draw_neuron(ax: "Axes") -> None:
    """A cell body with dendrites on the left and an axon that branches on the right."""
    source = np.random.default_rng(3)
    angles = np.linspace(0, 2 * np.pi, 60)
    for angle in np.linspace(0.62, 1.38, 6) * np.pi:
        tip = np.array([np.cos(angle), np.sin(angle)])
        for bend in source.uniform(-0.35, 0.35, 3):
            direction = np.array([np.cos(angle + bend), np.sin(angle + bend)])
            path = np.stack([0.3 * tip, 0.7 * tip, 0.7 * tip + 0.55 * direction])
            ax.plot(path[:, 0], path[:, 1], color=PALETTE[0], linewidth=1.6, solid_capstyle="round")
    axon = np.linspace(0.25, 2.4, 60)
    ax.plot(axon, 0.07 * np.sin(3 * axon), color=PALETTE[0], linewidth=3)
    end = np.array([axon[-1], 0.07 * np.sin(3 * axon[-1])])
    for angle in (-0.7, -0.25, 0.25, 0.7):
        tip = end + 0.5 * np.array([np.cos(angle), np.sin(angle)])
        ax.plot([end[0], tip[0]], [end[1], tip[1]], color=PALETTE[0], linewidth=1.6)
        ax.scatter(tip[0], tip[1], s=30, color=PALETTE[1], zorder=3)
    ax.fill(0.36 * np.cos(angles), 0.36 * np.sin(angles), color=PALETTE[0], zorder=2)
    ax.fill(0.14 * np.cos(angles), 0.14 * np.sin(angles), color=PALETTE[5], zorder=3)
    for text, position in (
        ("dendrites", (-0.9, 1.35)),
        ("cell body", (0.55, -0.55)),
        ("axon", (1.4, 0.2)),
        ("terminals", (2.75, -0.72)),
    ):
        ax.text(*position, text, ha="center")
