"""Outputs of random networks converge to the NNGP: excess kurtosis 15/width for ReLU (book sec. 15.2)."""

from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from parnassus.atlas import exponent
from parnassus.kernels import NNGP, Erf, GaussianProcess, ReLU, fully_connected
from parnassus.probability import normal_density
from parnassus.report import FAINT, INK, PALETTE, curves, network_diagram, subplots
from parnassus.train import Positive, Run, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B15.2-1", "B15.2-2", "B15.2-3", "B15.3-3")
expected = {
    "covariance_gap": at_most(0.15, "maximum distance of a covariance from the kernel over all widths"),
    "kurtosis_times_width": between(13.5, 16.5, "mean of excess kurtosis times width; theory: 15"),
    "kurtosis_exponent": between(-1.05, -0.95, "exponent of the excess kurtosis in the width; theory: −1"),
    "distance_at_1": between(0.1, 0.4, "Kolmogorov-Smirnov distance of z from the Gaussian at width 1"),
    "distance_at_1024": no_band("Kolmogorov-Smirnov distance at width 1,024; sampling noise is about 0.9/√num_draws"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_networks": 300, "num_functions": 3}, "gpu": {}}

WIDTHS = (1, 4, 64, 1024)
COSINE = 0.6


@dataclass(frozen=True)
class Experiment:
    num_networks: Positive[int] = 4_000  # random networks of each width
    num_functions: Positive[int] = 8  # functions plotted for each width

    def __call__(self, run: Run) -> dict[str, float]:
        names = [["x₁", "x₂", "x₃"], [f"y{mark}" for mark in "₁₂₃₄₅"], ["z₁", "z₂"]]
        run.figure(
            "network",
            network_diagram((3, 5, 2), units=names),
            "One hidden layer: y = σ(W¹x), z = W²y, random weights, no biases (book fig. 15.3).",
        )
        x = torch.tensor([[1.0, 0.0], [COSINE, (1 - COSINE**2) ** 0.5]], dtype=torch.float64)
        limit = fully_connected(1, ReLU()).nngp(x)
        outputs = {width: sample_outputs(x, width, self.num_networks) for width in WIDTHS}
        run.figure(
            "output distributions",
            plot_density(outputs),
            "Outputs z(x) of random ReLU networks (filled) and the limiting Gaussian (line), logarithmic: "
            "narrow networks have a peak at 0 and heavy tails, with the same variance.",
        )
        run.figure(
            "joint distribution at two inputs",
            plot_pair(outputs, limit),
            "(z(x), z(x')) for two inputs at cosine 0.6. Contours: one, two and three standard deviations of the "
            "limit. The covariance is exact at every width; only the shape changes.",
        )
        widths = tuple(2**power for power in range(11))
        excess = [excess_kurtosis(width, 100 * self.num_networks) for width in widths]
        run.figure(
            "excess kurtosis",
            curves(
                {"measured": (widths, excess), "15/width": (widths, [15 / width for width in widths])},
                x_label="width",
                y_label="excess kurtosis",
                log_x=True,
                log_y=True,
            ),
            "The excess kurtosis of z is 15/width for ReLU.",
        )
        run.figure(
            "functions",
            plot_function(self.num_functions),
            "Functions of random erf networks with two hidden layers and biases, and samples of the limit; the band is "
            "± two standard deviations of the limit.",
        )
        covariance = {width: float(z.prod(1).mean()) for width, z in outputs.items()}
        distances = {width: float(stats.kstest(z[:, 0].numpy(), "norm").statistic) for width, z in outputs.items()}
        run.table(
            "statistics by width",
            [
                {
                    "width": width,
                    "covariance": covariance[width],
                    "kernel": float(limit[0, 1]),
                    "KS distance": distances[width],
                }
                for width in WIDTHS
            ],
            "Covariances differ from the kernel by sampling error only; Kolmogorov-Smirnov distance to the Gaussian.",
        )
        return {
            "covariance_gap": max(abs(value - float(limit[0, 1])) for value in covariance.values()),
            "kurtosis_times_width": float(np.mean(np.array(excess) * np.array(widths))),
            "kurtosis_exponent": exponent(widths, excess),
            "distance_at_1": distances[1],
            "distance_at_1024": distances[1024],
        }


def sample_outputs(x: Tensor, width: int, draws: int) -> Tensor:
    """Outputs z at both inputs of many random networks with weights from N(0, 1), (draws, 2)."""
    first = torch.randn(draws, width, x.shape[1], dtype=x.dtype)
    second = torch.randn(draws, 1, width, dtype=x.dtype)
    z: Tensor = (2 / width) ** 0.5 * (second @ (first @ x.mT).relu())[:, 0]
    return z


def excess_kurtosis(width: int, num_units: int) -> float:
    """Excess kurtosis of z for a unit input: z is N(0, Q) given the hidden layer, so E z⁴ = 3 E Q²."""
    q = torch.randn(max(100, num_units // width), width, dtype=torch.float64).relu().square().mean(1)
    return float(3 * (q.square().mean() / q.mean().square() - 1))


def plot_density(outputs: dict[int, Tensor]) -> "Figure":
    figure, axes = subplots(1, len(outputs), size=(11.0, 3.0))
    grid = torch.linspace(-5, 5, 201)
    for ax, (width, z) in zip(axes[0], outputs.items(), strict=True):
        ax.hist(z[:, 0].numpy(), bins=np.linspace(-5, 5, 51), density=True, color=PALETTE[0], alpha=0.6)
        ax.plot(grid, normal_density(grid, mean=0.0, variance=1.0), color=PALETTE[1])
        ax.set(title=f"width {width:,}", xlabel="z(x)", yscale="log", ylim=(1e-4, 3), xlim=(-5, 5))
    axes[0, 0].set_ylabel("density")
    return figure


def plot_pair(outputs: dict[int, Tensor], limit: Tensor) -> "Figure":
    figure, axes = subplots(1, len(outputs), size=(11.0, 3.1))
    angle = torch.linspace(0, 2 * pi, 181, dtype=torch.float64)
    ring = torch.linalg.cholesky(limit) @ torch.stack([angle.cos(), angle.sin()])
    for ax, (width, z) in zip(axes[0], outputs.items(), strict=True):
        points = z[:2_000]
        ax.scatter(points[:, 0], points[:, 1], s=3, color=PALETTE[0], alpha=0.5, linewidths=0, rasterized=True)
        for deviations in (1, 2, 3):
            ax.plot(deviations * ring[0], deviations * ring[1], color=INK, linewidth=0.8)
        ax.set(title=f"width {width:,}", xlabel="z(x)", xlim=(-4.5, 4.5), ylim=(-4.5, 4.5), aspect="equal")
    axes[0, 0].set_ylabel("z(x′)")
    return figure


def plot_function(count: int) -> "Figure":
    widths = (3, 30, 300)
    network = fully_connected(2, Erf(), bias_variance=0.3)
    x = torch.linspace(-3, 3, 121, dtype=torch.float64)[:, None]
    kernel = NNGP(network)
    deviation = kernel.diagonal(x).sqrt()
    figure, axes = subplots(1, len(widths) + 1, size=(11.0, 3.0))
    with torch.no_grad():
        samples = [
            torch.stack([network.module((1,), width).double()(x)[:, 0] for _ in range(count)]) for width in widths
        ]
    samples.append(GaussianProcess(kernel).sample(x, count).values)
    titles = [*(f"width {width}" for width in widths), "limit"]
    for ax, values, title in zip(axes[0], samples, titles, strict=True):
        ax.fill_between(x[:, 0], -2 * deviation, 2 * deviation, color=FAINT, alpha=0.25, linewidth=0)
        for value, colour in zip(values, PALETTE * count, strict=False):
            ax.plot(x[:, 0], value, color=colour, linewidth=1)
        ax.set(title=title, xlabel="x", ylim=(-5, 5))
    axes[0, 0].set_ylabel("f(x)")
    return figure
