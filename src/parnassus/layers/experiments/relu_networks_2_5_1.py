"""Random 2-5-1 ReLU networks without biases: kinks along lines through the origin (Diehl ex. 1.2)."""

from dataclasses import dataclass
from math import pi, sqrt
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from parnassus.layers import architecture, mlp, xavier_normal
from parnassus.report import FAINT, INK, PALETTE, network_diagram, subplots
from parnassus.report.style import SEQUENTIAL
from parnassus.train import Positive, Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D1.0.1", "D1.0.12", "D1.0.13", "C-01")
expected = {
    "parameters": between(21, 21, "parameters of a 2-5-1 network"),
    "linear_regions": between(2, 10, "maximum number of linear regions of a network without biases"),
    "homogeneity_error": at_most(1e-5, "maximum of |f(3x) − 3f(x)| without biases"),
    "kinks": between(1, 5, "maximum number of kinks of a 1-5-1 network with biases on [−10, 10]"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"grid_size": 21}, "gpu": {}}
NUM_NETWORKS = 10


@dataclass(frozen=True)
class Experiment:
    width: Positive[int] = 5  # hidden units
    grid_size: Positive[int] = 100  # grid points per side

    def __call__(self, run: Run) -> dict[str, float]:
        surfaces = [mlp((2, self.width, 1), initialise=xavier_normal()) for _ in range(NUM_NETWORKS)]
        lines = [mlp((1, self.width, 1), initialise=with_random_bias) for _ in range(NUM_NETWORKS)]
        measures = architecture(surfaces[0])
        sectors, kinks = [count_sectors(network) for network in surfaces], [find_kinks(network) for network in lines]
        run.figure(
            "architecture",
            network_diagram(measures.sizes, units=[["x₁", "x₂"], [""] * self.width, ["y"]]),
            "Two inputs, a hidden layer of ReLU units, one output (Diehl fig. 1).",
        )
        run.figure(
            "output surfaces",
            plot_surfaces(surfaces, self.grid_size),
            "Outputs of ten networks without biases on [−2, 2]², Xavier normal initialisation (Diehl fig. 2). Each is "
            "positively homogeneous: linear along every ray from the origin.",
        )
        run.figure(
            "switching lines",
            plot_switching_lines(surfaces, self.grid_size),
            f"The same outputs as heat maps, with the lines w·x = 0 on which a hidden unit switches. All pass through "
            f"the origin; {self.width} lines divide the plane into {2 * self.width} sectors.",
        )
        run.figure(
            "one-dimensional networks",
            plot_graphs(lines, kinks),
            f"Ten 1-{self.width}-1 networks with random biases: piecewise linear, with a kink "
            "where a unit switches (dots).",
        )
        run.note(
            "summary",
            f"The network has {measures.parameters} parameters, depth {measures.depth} (layers with weights), "
            f"{measures.hidden_layers} hidden layer and width {measures.width}. Without biases f(αx) = αf(x) for every "
            "α > 0, so its values on a circle determine it.",
        )
        return {
            "parameters": float(measures.parameters),
            "linear_regions": float(max(sectors)),
            "homogeneity_error": max(homogeneity_error(network) for network in surfaces),
            "kinks": float(max(map(len, kinks))),
        }


def with_random_bias(weight: Tensor, bias: Tensor) -> None:
    """Xavier normal weights; normal biases with standard deviation 1/√(number of outputs)."""
    xavier_normal()(weight, bias)
    nn.init.normal_(bias, std=1 / sqrt(len(bias)))


@torch.no_grad()
def count_sectors(network: nn.Sequential) -> int:
    """Number of changes of the activation pattern along a circle around the origin."""
    angle = 2 * pi * torch.arange(7_200, dtype=torch.float64) / 7_200 + 1e-4
    circle = torch.stack([angle.cos(), angle.sin()], 1)
    is_active = circle @ network.get_parameter("0.weight").double() > 0
    return int((is_active != is_active.roll(1, 0)).any(1).sum())


@torch.no_grad()
def homogeneity_error(network: nn.Sequential) -> float:
    x = torch.randn(100, 2)
    return float((network(3 * x) - 3 * network(x)).abs().max())


@torch.no_grad()
def find_kinks(network: nn.Sequential, limit: float = 10.0) -> Tensor:
    """The kinks x = −b_i/a_i with |x| < limit, in ascending order."""
    positions = -network.get_parameter("0.bias") / network.get_parameter("0.weight")[0]
    return positions[positions.abs() < limit].sort().values


@torch.no_grad()
def evaluate_on_grid(network: nn.Sequential, num_points: int) -> tuple[Tensor, Tensor]:
    line = torch.linspace(-2, 2, num_points)
    y, x = torch.meshgrid(line, line, indexing="ij")
    return line, network(torch.stack([x, y], -1))[..., 0]


def plot_surfaces(networks: list[nn.Sequential], num_points: int) -> "Figure":
    figure, axes = subplots(2, 5, size=(11.5, 5.0), three_d=True)
    for ax, network in zip(axes.flat, networks, strict=True):
        line, outputs = evaluate_on_grid(network, num_points)
        x, y = np.meshgrid(line.numpy(), line.numpy())
        ax.plot_surface(x, y, outputs.numpy(), cmap=SEQUENTIAL, rcount=50, ccount=50, linewidth=0, rasterized=True)
        ax.set_xticks([-2, 0, 2])
        ax.set_yticks([-2, 0, 2])
        ax.tick_params(labelsize=7, pad=-3)
        ax.zaxis.get_major_locator().set_params(nbins=4)
    return figure


def plot_switching_lines(networks: list[nn.Sequential], num_points: int) -> "Figure":
    figure, axes = subplots(2, 5, size=(11.5, 4.7))
    for ax, network in zip(axes.flat, networks, strict=True):
        _, outputs = evaluate_on_grid(network, num_points)
        ax.imshow(outputs.numpy(), extent=(-2, 2, -2, 2), origin="lower", cmap=SEQUENTIAL, interpolation="bilinear")
        for weight in network.get_parameter("0.weight").detach().T:
            direction = torch.stack([-weight[1], weight[0]]) / weight.norm()
            ends = torch.stack([-3 * direction, 3 * direction])
            ax.plot(ends[:, 0], ends[:, 1], color="#ffffff")
        ax.set(xlim=(-2, 2), ylim=(-2, 2), xticks=[-2, 0, 2], yticks=[-2, 0, 2])
        ax.grid(visible=False)
    return figure


@torch.no_grad()
def plot_graphs(networks: list[nn.Sequential], kinks: list[Tensor]) -> "Figure":
    figure, axes = subplots(2, 5, size=(11.5, 4.2))
    x = torch.linspace(-10, 10, 1_001)[:, None]
    for ax, network, positions in zip(axes.flat, networks, kinks, strict=True):
        ax.axhline(0, color=FAINT, linewidth=0.6)
        ax.plot(x[:, 0], network(x)[:, 0], color=PALETTE[0])
        ax.plot(positions, network(positions[:, None])[:, 0], "o", color=INK, markersize=4)
    return figure
