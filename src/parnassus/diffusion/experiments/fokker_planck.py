"""Fokker-Planck equation against histograms of Euler-Maruyama paths (Diehl sec. 5.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, exp
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.diffusion.continuous.euler_maruyama import Drift, euler_maruyama
from parnassus.diffusion.continuous.fokker_planck import (
    fokker_planck,
    heat_kernel,
    jump_rates,
    stationary_density,
    transition_matrix,
)
from parnassus.diffusion.continuous.ornstein_uhlenbeck import OrnsteinUhlenbeck
from parnassus.probability import normal_density
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import Positive, Run, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("C-26", "C-27")
expected = {
    "double_well": at_most(0.02, "largest total variation distance between histogram and density, double well"),
    "ornstein_uhlenbeck": at_most(
        0.02, "largest total variation distance between histogram and density, Ornstein-Uhlenbeck process"
    ),
    "ornstein_uhlenbeck_exact": at_most(
        1e-3, "largest error of the numerical density of the Ornstein-Uhlenbeck process"
    ),
    "mass_error": at_most(1e-10, "largest change of the total mass over time"),
    "stationary": at_most(0.02, "total variation distance between the last double-well density and exp(−U)"),
    "printed_mass": between(0.70, 0.71, "mass of the heat kernel of the notes at t = 2; the correct value is 1"),
    "slowest_rate": no_band("spectral gap: the rate of convergence to the stationary density, double well"),
}
profiles = {
    "smoke": {"num_paths": 4_000, "num_cells": 60, "step_size": 0.05},
    "gpu": {"num_paths": 2_000_000},
}
TIMES = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
START = -0.2  # mean of the initial density, with standard deviation 0.1
LIMIT = 3.0  # half the length of the interval


def double_well(x: Tensor, _: Tensor) -> Tensor:
    """½ ∂log π for π ∝ exp(−U), U = (x² − 1)² − x/2."""
    return -2 * x * (x.square() - 1) + 0.25


def unit_volatility(x: Tensor, _: Tensor) -> Tensor:
    return torch.ones_like(x)


@dataclass(frozen=True)
class Experiment:
    num_paths: Positive[int] = 40_000  # Euler-Maruyama paths for the histograms
    num_cells: Positive[int] = 240  # grid cells on the interval from −3 to 3
    step_size: Positive[float] = 0.005  # time step of the Euler-Maruyama method

    def __call__(self, run: Run) -> dict[str, float]:
        edges = torch.linspace(-LIMIT, LIMIT, self.num_cells + 1, dtype=torch.float64)
        x, times = (edges[:-1] + edges[1:]) / 2, torch.tensor(TIMES, dtype=torch.float64)
        initial = normal_density(x, mean=START, variance=0.01)
        process = OrnsteinUhlenbeck(rate=1.0, mean=0.5, sigma=1.0)
        drifts: dict[str, Drift] = {"double well": double_well, "Ornstein-Uhlenbeck": process.drift}

        densities = {
            name: fokker_planck(drift, unit_volatility, initial, edges, times) for name, drift in drifts.items()
        }
        paths = {name: self.simulate_paths(run, drift) for name, drift in drifts.items()}
        run.figure(
            "densities",
            plot_densities(x, densities, paths),
            "Histograms of paths (bars) and the solution of the Fokker-Planck equation (lines). Above, a tilted double "
            "well: the mass first splits between the wells and then moves slowly into the deeper one. Below, the "
            "Ornstein-Uhlenbeck process.",
        )
        distances = {
            name: max(total_variation(*pair, edges) for pair in zip(densities[name], paths[name], strict=True))
            for name in drifts
        }

        stationary = stationary_density(double_well, unit_volatility, edges)
        gibbs = torch.exp(-((x.square() - 1).square() - x / 2))
        gibbs = gibbs / (gibbs * edges.diff()).sum()
        rates = jump_rates(double_well, unit_volatility, edges)
        slowest = float(-torch.linalg.eigvals(rates).real.sort(descending=True).values[1])
        plot_convergence(run, rates, initial * edges.diff(), stationary * edges.diff(), slowest)
        plot_drift_and_noise(run, x, edges)

        transition = process.transition(torch.full_like(times[1:], START), times[1:])
        variance = transition.variance + torch.exp(-2 * times[1:]) * 0.01  # the second term: of the initial density
        exact = [normal_density(x, mean=m, variance=v) for m, v in zip(transition.mean, variance, strict=True)]
        masses = torch.cat([(density * edges.diff()).sum(1) for density in densities.values()])
        wide = torch.linspace(-12, 12, 2_001, dtype=torch.float64)
        return {
            "double_well": distances["double well"],
            "ornstein_uhlenbeck": distances["Ornstein-Uhlenbeck"],
            "ornstein_uhlenbeck_exact": float((densities["Ornstein-Uhlenbeck"][1:] - torch.stack(exact)).abs().max()),
            "mass_error": float((masses - masses[0]).abs().max()),
            "stationary": float(((densities["double well"][-1] - gibbs).abs() * edges.diff()).sum() / 2),
            "printed_mass": float(torch.trapezoid(printed_kernel(wide, 2.0), wide)),
            "slowest_rate": slowest,
        }

    def simulate_paths(self, run: Run, drift: Drift) -> list[Tensor]:
        """The positions of all paths at each of TIMES."""
        x = START + 0.1 * torch.randn(self.num_paths, dtype=torch.float64, device=run.device)
        positions = [x]
        for start, end in pairwise(TIMES):
            times = torch.linspace(
                start, end, ceil((end - start) / self.step_size) + 1, dtype=torch.float64, device=run.device
            )
            positions.append(euler_maruyama(drift, unit_volatility, positions[-1], times))
        return [x.cpu() for x in positions]


def printed_kernel(x: Tensor, t: float) -> Tensor:
    """The heat kernel without the time in its exponent, as the notes print it."""
    return torch.exp(-x.square() / 2) * heat_kernel(torch.zeros_like(x), t)


def total_variation(density: Tensor, paths: Tensor, edges: Tensor) -> float:
    """Total variation distance between paths and density, over 30 bins."""
    frequency = torch.histc(paths.clamp(-LIMIT, LIMIT), 30, -LIMIT, LIMIT) / len(paths)
    mass = (density * edges.diff()).view(30, -1).sum(1)
    return float((frequency - mass).abs().sum() / 2)


def plot_densities(x: Tensor, densities: dict[str, Tensor], paths: dict[str, list[Tensor]]) -> "Figure":
    figure, axes = subplots(len(densities), len(TIMES), size=(12.0, 4.6))
    for row, name in zip(axes, densities, strict=True):
        for ax, density, positions, t in zip(row, densities[name], paths[name], TIMES, strict=True):
            heights = torch.histc(positions, 60, -LIMIT, LIMIT) / len(positions) * 60 / (2 * LIMIT)
            centres = torch.linspace(-LIMIT, LIMIT, 61)[:-1] + LIMIT / 60
            ax.bar(centres.numpy(), heights.numpy(), width=2 * LIMIT / 60, color=PALETTE[0], alpha=0.35)
            ax.plot(x, density, color=PALETTE[1], linewidth=1.5)
            ax.set(title=f"t = {t:g}", xlim=(-LIMIT, LIMIT), ylim=(0, None), yticks=[], xticks=[-2, 0, 2])
            ax.grid(visible=False)
        row[0].set_ylabel(name)
    return figure


def plot_convergence(run: Run, rates: Tensor, initial: Tensor, stationary: Tensor, slowest: float) -> None:
    """Total variation distance of the double-well density to the stationary one, from two initial densities."""
    step, times = transition_matrix(rates, 0.1), [0.1 * k for k in range(121)]
    right = torch.zeros_like(initial)
    right[-len(right) // 12] = 1.0
    lines: dict[str, tuple[Sequence[float], Sequence[float]]] = {}
    for name, start in {f"from {START:g}": initial / initial.sum(), "from 2.5": right}.items():
        mass, distances = start, []
        for _ in times:
            distances.append(float((mass - stationary).abs().sum() / 2))
            mass = step @ mass
        lines[name] = (times, distances)
    guide = [0.5 * exp(-slowest * t) for t in times]
    lines[f"½ exp(−{slowest:.2f} t)"] = (times, guide)
    figure = curves(lines, x_label="t", y_label="total variation distance to π", log_y=True)
    run.figure(
        "convergence",
        figure,
        "Convergence of the Langevin equation to its stationary density. After fast relaxation into the wells, the "
        "distance decays at the rate of crossing the barrier, for every initial density.",
    )


def plot_drift_and_noise(run: Run, x: Tensor, edges: Tensor) -> None:
    """Drift without noise, noise without drift, and the misprinted heat kernel of the notes."""
    figure, axes = subplots(1, 3, size=(11.5, 3.2))
    start, span = normal_density(x, mean=-1.5, variance=0.05), torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64)
    zero = torch.zeros_like
    transport = fokker_planck(unit_volatility, lambda x, _: zero(x), start, edges, span)
    heat = fokker_planck(lambda x, _: zero(x), unit_volatility, heat_kernel(x, 0.05), edges, span / 4 + 0.05)
    for ax, rows, times in ((axes[0, 0], transport, span), (axes[0, 1], heat, span / 4 + 0.05)):
        for density, t, colour in zip(rows, times.tolist(), PALETTE, strict=False):
            ax.plot(x, density, color=colour, label=f"t = {t:.3g}")
    for t, colour in zip(span[1:].tolist(), PALETTE, strict=False):
        axes[0, 0].plot(x, normal_density(x, mean=-1.5 + t, variance=0.05), color=FAINT, linestyle="--", linewidth=1)
        wide = torch.linspace(-5, 5, 401)
        axes[0, 2].plot(wide, heat_kernel(wide, t), color=colour, label=f"correct, t = {t:g}")
        axes[0, 2].plot(wide, printed_kernel(wide, t), color=colour, linestyle="--", label=f"printed, t = {t:g}")
    axes[0, 0].set(title="μ = 1, σ = 0: transport", xlabel="x")
    axes[0, 1].set(title="μ = 0, σ = 1: heat equation", xlabel="x")
    axes[0, 2].set(title="heat kernel", xlabel="x")
    for ax in axes[0]:
        ax.legend(fontsize=8)
        ax.tick_params(colors=INK)
    run.figure(
        "drift and noise",
        figure,
        "Left: drift transports the density (dashed: exact solution; the solver has numerical diffusion of a cell's "
        "width). Middle: noise widens it. Right: without t in the exponent, as printed, the width of the kernel is "
        "constant and its mass decreases.",
    )
