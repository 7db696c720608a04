"""Figures of flows in the plane: learned densities and samples (book sec. 13.1)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.data import Dataset
from parnassus.flows.flow import Flow
from parnassus.report import PALETTE, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_density_and_samples(
    flow: Flow, data: Dataset, grid_size: int, true_log_prob: Callable[[Tensor], Tensor] | None
) -> "tuple[Figure, float]":
    """The true density (or the data), the learned density, and samples; with the integral of the learned density."""
    low, high = data.train.x.amin(0).cpu(), data.train.x.amax(0).cpu()
    margin = 0.25 * (high - low)
    first, second = (
        torch.linspace(float(a), float(b), grid_size) for a, b in zip(low - margin, high + margin, strict=True)
    )
    points = torch.cartesian_prod(first, second).to(data.train.x.device)
    cell = float((first[1] - first[0]) * (second[1] - second[0]))
    density = flow.log_prob(points).exp().view(grid_size, grid_size).mT.cpu()
    figure, axes = subplots(1, 3, size=(11.5, 3.4))
    extent = (float(first[0]), float(first[-1]), float(second[0]), float(second[-1]))
    truth = density if true_log_prob is None else true_log_prob(points).exp().view(grid_size, grid_size).mT.cpu()
    top = float(truth.max())
    for ax, values in ((axes[0, 0], truth), (axes[0, 1], density)):
        ax.imshow(values.numpy(), origin="lower", extent=extent, vmin=0, vmax=top, cmap="viridis", aspect="auto")
        ax.grid(visible=False)
    if true_log_prob is None:
        axes[0, 0].clear()
        _plot_points(axes[0, 0], data.test.x, PALETTE[0])
    axes[0, 0].set_title("data" if true_log_prob is None else "true density")
    axes[0, 1].set_title("learned density")
    _plot_points(axes[0, 2], flow.sample(2_000), PALETTE[1])
    axes[0, 2].set(title="samples", xlim=extent[:2], ylim=extent[2:])
    return figure, float(density.double().sum()) * cell


def _plot_points(ax: "Axes", points: Tensor, colour: str) -> None:
    shown = points.cpu()
    ax.scatter(shown[:, 0], shown[:, 1], s=2, color=colour, linewidths=0, rasterized=True)
