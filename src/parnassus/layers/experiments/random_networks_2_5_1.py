"""Ten networks of shape 2-5-1 at random weights: creases through the origin (Diehl ex. 1.2)."""

from dataclasses import dataclass
from math import pi, sqrt
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from parnassus.layers import anatomy, mlp, xavier_normal
from parnassus.report import FAINT, INK, PALETTE, network_diagram, subplots
from parnassus.report.ink import SEQUENTIAL
from parnassus.train import Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D1.0.1", "D1.0.12", "D1.0.13", "C-01")
expected = {
    "parameters": between(21, 21, "numbers that make up a 2-5-1 network"),
    "sectors": between(2, 10, "most sectors into which the creases of a network without biases cut the plane"),
    "not_homogeneous": at_most(1e-5, "largest |f(3x) − 3f(x)| without biases"),
    "kinks": between(1, 5, "most kinks of a 1-5-1 network with biases on [−10, 10]"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"points": 21}, "gpu": {}}
SHOWN = 10


@dataclass(frozen=True)
class Experiment:
    hidden: int = 5  # hidden units
    points: int = 100  # of the raster, along a side

    def __call__(self, run: Run) -> dict[str, float]:
        surfaces = [mlp((2, self.hidden, 1), initialise=xavier_normal()) for _ in range(SHOWN)]
        lines = [mlp((1, self.hidden, 1), initialise=with_random_bias) for _ in range(SHOWN)]
        measures = anatomy(surfaces[0])
        sectors, kinks = [count_sectors(network) for network in surfaces], [find_kinks(network) for network in lines]
        run.figure(
            "the network",
            network_diagram(measures.sizes, units=[["x₁", "x₂"], [""] * self.hidden, ["y"]]),
            "Two inputs, a hidden layer of ReLU units, one output (Diehl fig. 1).",
        )
        run.figure(
            "ten realisations",
            draw_surfaces(surfaces, self.points),
            "Ten networks over [−2, 2]², weights drawn as Glorot and Bengio do, no biases; height and colour are the "
            "output (Diehl fig. 2). Every one is a cone: straight along each ray from the origin.",
        )
        run.figure(
            "from above",
            draw_creases(surfaces, self.points),
            "The same ten from above, each with the lines w·x = 0 on which a hidden unit switches: all pass through "
            "the origin, and five lines make ten sectors.",
        )
        run.figure(
            "on the line",
            draw_lines(lines, kinks),
            "Ten networks from one number to one, with biases as random as the weights: straight pieces, bent where a "
            "unit switches (dots).",
        )
        run.note(
            "what to see",
            f"A network of these sizes has {measures.parameters} numbers, depth {measures.depth} (layers that have "
            f"weights), {measures.hidden} hidden layer and width {measures.width}. Without biases f(αx) = αf(x) for "
            "every α > 0: to know the surface it is enough to know it on a circle.",
        )
        return {
            "parameters": float(measures.parameters),
            "sectors": float(max(sectors)),
            "not_homogeneous": max(homogeneity_gap(network) for network in surfaces),
            "kinks": float(max(map(len, kinks))),
        }


def with_random_bias(weight: Tensor, bias: Tensor) -> None:
    """Weights after Glorot and Bengio, and biases of the spread that a square layer of their size would have."""
    xavier_normal()(weight, bias)
    nn.init.normal_(bias, std=1 / sqrt(len(bias)))


@torch.no_grad()
def count_sectors(network: nn.Sequential) -> int:
    """How often the set of units that are on changes on a way around the origin."""
    angle = 2 * pi * torch.arange(7_200, dtype=torch.float64) / 7_200 + 1e-4
    around = torch.stack([angle.cos(), angle.sin()], 1)
    on = around @ network.get_parameter("0.weight").double() > 0
    return int((on != on.roll(1, 0)).any(1).sum())


@torch.no_grad()
def homogeneity_gap(network: nn.Sequential) -> float:
    x = torch.randn(100, 2)
    return float((network(3 * x) - 3 * network(x)).abs().max())


@torch.no_grad()
def find_kinks(network: nn.Sequential, reach: float = 10.0) -> Tensor:
    """The places x = −b_i/a_i within reach, in order."""
    places = -network.get_parameter("0.bias") / network.get_parameter("0.weight")[0]
    return places[places.abs() < reach].sort().values


@torch.no_grad()
def heights_over_the_plane(network: nn.Sequential, points: int) -> tuple[Tensor, Tensor]:
    line = torch.linspace(-2, 2, points)
    up, across = torch.meshgrid(line, line, indexing="ij")
    return line, network(torch.stack([across, up], -1))[..., 0]


def draw_surfaces(networks: list[nn.Sequential], points: int) -> "Figure":
    figure, axes = subplots(2, 5, size=(11.5, 5.0), three_d=True)
    for ax, network in zip(axes.flat, networks, strict=True):
        line, heights = heights_over_the_plane(network, points)
        x, y = np.meshgrid(line.numpy(), line.numpy())
        ax.plot_surface(x, y, heights.numpy(), cmap=SEQUENTIAL, rcount=50, ccount=50, linewidth=0, rasterized=True)
        ax.set_xticks([-2, 0, 2])
        ax.set_yticks([-2, 0, 2])
        ax.tick_params(labelsize=7, pad=-3)
        ax.zaxis.get_major_locator().set_params(nbins=4)
    return figure


def draw_creases(networks: list[nn.Sequential], points: int) -> "Figure":
    figure, axes = subplots(2, 5, size=(11.5, 4.7))
    for ax, network in zip(axes.flat, networks, strict=True):
        _, heights = heights_over_the_plane(network, points)
        ax.imshow(heights.numpy(), extent=(-2, 2, -2, 2), origin="lower", cmap=SEQUENTIAL, interpolation="bilinear")
        for weight in network.get_parameter("0.weight").detach().T:
            along = torch.stack([-weight[1], weight[0]]) / weight.norm()
            ax.plot(3 * torch.stack([-along[0], along[0]]), 3 * torch.stack([-along[1], along[1]]), color="#ffffff")
        ax.set(xlim=(-2, 2), ylim=(-2, 2), xticks=[-2, 0, 2], yticks=[-2, 0, 2])
        ax.grid(visible=False)
    return figure


@torch.no_grad()
def draw_lines(networks: list[nn.Sequential], kinks: list[Tensor]) -> "Figure":
    figure, axes = subplots(2, 5, size=(11.5, 4.2))
    x = torch.linspace(-10, 10, 1_001)[:, None]
    for ax, network, places in zip(axes.flat, networks, kinks, strict=True):
        ax.axhline(0, color=FAINT, linewidth=0.6)
        ax.plot(x[:, 0], network(x)[:, 0], color=PALETTE[0])
        ax.plot(places, network(places[:, None])[:, 0], "o", color=INK, markersize=4)
    return figure
