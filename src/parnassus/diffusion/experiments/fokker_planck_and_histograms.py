"""The density of a diffusion, from its equation and from many paths, on the way to rest (Diehl sec. 5.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, exp
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.diffusion.euler_maruyama import Drift, euler_maruyama
from parnassus.diffusion.fokker_planck import (
    fokker_planck,
    heat_kernel,
    jump_rates,
    stationary_density,
    transition_matrix,
)
from parnassus.diffusion.ornstein_uhlenbeck import OrnsteinUhlenbeck
from parnassus.probability import normal_density
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import Run, at_most, between, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("C-26", "C-27")
expected = {
    "double_well": at_most(0.02, "largest total variation between histogram and density, double well"),
    "spring": at_most(0.02, "the same for the Ornstein-Uhlenbeck process"),
    "spring_exact": at_most(1e-3, "largest gap between the solved and the exact density of that process"),
    "mass_lost": at_most(1e-10, "by how much the mass of any density differs from 1"),
    "rest": at_most(0.02, "total variation between the double well's last density and exp(−U)"),
    "printed_mass": between(0.70, 0.71, "mass of the heat kernel as printed at t = 2, where 1 is right"),
    "slowest_rate": reported("rate at which the double well forgets its start, the gap of the equation"),
}
profiles = {
    "smoke": {"paths": 4_000, "cells": 60, "step": 0.05},
    "gpu": {"paths": 2_000_000},
}
MOMENTS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
BEGIN = -0.2  # the place around which all paths begin, with deviation 0.1
REACH = 3.0


def double_well(x: Tensor, _: Tensor) -> Tensor:
    """½ ∂log π for π ∝ exp(−U), U = (x² − 1)² − x/2."""
    return -2 * x * (x.square() - 1) + 0.25


def one(x: Tensor, _: Tensor) -> Tensor:
    return torch.ones_like(x)


@dataclass(frozen=True)
class Experiment:
    paths: int = 40_000  # paths for the histograms
    cells: int = 240  # cells of the line from −3 to 3
    step: float = 0.005  # time of an Euler-Maruyama step

    def __call__(self, run: Run) -> dict[str, float]:
        edges = torch.linspace(-REACH, REACH, self.cells + 1, dtype=torch.float64)
        x, times = (edges[:-1] + edges[1:]) / 2, torch.tensor(MOMENTS, dtype=torch.float64)
        begin = normal_density(x, mean=BEGIN, variance=0.01)
        spring = OrnsteinUhlenbeck(pull=1.0, mean=0.5, sigma=1.0)
        drifts: dict[str, Drift] = {"double well": double_well, "spring": spring.drift}

        densities = {name: fokker_planck(drift, one, begin, edges, times) for name, drift in drifts.items()}
        clouds = {name: self.clouds(run, drift) for name, drift in drifts.items()}
        run.figure(
            "film",
            film(x, densities, clouds),
            "Bars: histograms of paths. Lines: the solution of the Fokker-Planck equation, which draws no path. "
            "Above, a tilted double well: the mass soon splits between the wells and then leaks into the deeper one. "
            "Below, noise on a spring.",
        )
        apart = {
            name: max(variation(*pair, edges) for pair in zip(densities[name], clouds[name], strict=True))
            for name in drifts
        }

        rest = stationary_density(double_well, one, edges)
        gibbs = torch.exp(-((x.square() - 1).square() - x / 2))
        gibbs = gibbs / (gibbs * edges.diff()).sum()
        rates = jump_rates(double_well, one, edges)
        slowest = float(-torch.linalg.eigvals(rates).real.sort(descending=True).values[1])
        show_rest(run, rates, begin * edges.diff(), rest * edges.diff(), slowest)
        show_examples(run, x, edges)

        law = spring.transition(torch.full_like(times[1:], BEGIN), times[1:])
        kept = torch.exp(-2 * times[1:]) * 0.01  # of the variance at the start
        variance = law.variance + kept
        exact = [normal_density(x, mean=m, variance=v) for m, v in zip(law.mean, variance, strict=True)]
        masses = torch.cat([(density * edges.diff()).sum(1) for density in densities.values()])
        wide = torch.linspace(-12, 12, 2_001, dtype=torch.float64)
        return {
            "double_well": apart["double well"],
            "spring": apart["spring"],
            "spring_exact": float((densities["spring"][1:] - torch.stack(exact)).abs().max()),
            "mass_lost": float((masses - masses[0]).abs().max()),
            "rest": float(((densities["double well"][-1] - gibbs).abs() * edges.diff()).sum() / 2),
            "printed_mass": float(torch.trapezoid(printed_kernel(wide, 2.0), wide)),
            "slowest_rate": slowest,
        }

    def clouds(self, run: Run, drift: Drift) -> list[Tensor]:
        """Where the paths are at each moment."""
        x = BEGIN + 0.1 * torch.randn(self.paths, dtype=torch.float64, device=run.device)
        seen = [x]
        for now, later in pairwise(MOMENTS):
            times = torch.linspace(
                now, later, ceil((later - now) / self.step) + 1, dtype=torch.float64, device=run.device
            )
            seen.append(euler_maruyama(drift, one, seen[-1], times))
        return [cloud.cpu() for cloud in seen]


def printed_kernel(x: Tensor, t: float) -> Tensor:
    """The heat kernel without the time in its exponent, as the notes print it."""
    return torch.exp(-x.square() / 2) * heat_kernel(torch.zeros_like(x), t)


def variation(density: Tensor, cloud: Tensor, edges: Tensor) -> float:
    """Total variation between the paths and the density, over 30 wide bins."""
    share = torch.histc(cloud.clamp(-REACH, REACH), 30, -REACH, REACH) / len(cloud)
    mass = (density * edges.diff()).view(30, -1).sum(1)
    return float((share - mass).abs().sum() / 2)


def film(x: Tensor, densities: dict[str, Tensor], clouds: dict[str, list[Tensor]]) -> "Figure":
    figure, axes = subplots(len(densities), len(MOMENTS), size=(12.0, 4.6))
    for row, name in zip(axes, densities, strict=True):
        for ax, density, cloud, t in zip(row, densities[name], clouds[name], MOMENTS, strict=True):
            counts = torch.histc(cloud, 60, -REACH, REACH) / len(cloud) * 60 / (2 * REACH)
            centres = torch.linspace(-REACH, REACH, 61)[:-1] + REACH / 60
            ax.bar(centres.numpy(), counts.numpy(), width=2 * REACH / 60, color=PALETTE[0], alpha=0.35)
            ax.plot(x, density, color=PALETTE[1], linewidth=1.5)
            ax.set(title=f"t = {t:g}", xlim=(-REACH, REACH), ylim=(0, None), yticks=[], xticks=[-2, 0, 2])
            ax.grid(visible=False)
        row[0].set_ylabel(name)
    return figure


def show_rest(run: Run, rates: Tensor, begin: Tensor, rest: Tensor, slowest: float) -> None:
    """How far the double well's law is from rest, from two starts."""
    step, times = transition_matrix(rates, 0.1), [0.1 * k for k in range(121)]
    right = torch.zeros_like(begin)
    right[-len(right) // 12] = 1.0
    lines: dict[str, tuple[Sequence[float], Sequence[float]]] = {}
    for name, start in {f"from {BEGIN:g}": begin / begin.sum(), "from 2.5": right}.items():
        mass, apart = start, []
        for _ in times:
            apart.append(float((mass - rest).abs().sum() / 2))
            mass = step @ mass
        lines[name] = (times, apart)
    guide = [0.5 * exp(-slowest * t) for t in times]
    lines[f"½ exp(−{slowest:.2f} t)"] = (times, guide)
    figure = curves(lines, x_label="t", y_label="total variation to π", log_y=True)
    run.figure(
        "forgetting",
        figure,
        "Langevin's equation forgets where it began. After a fast fall into the wells, every start is forgotten at "
        "one rate, that of leaking over the hill.",
    )


def show_examples(run: Run, x: Tensor, edges: Tensor) -> None:
    """Pure drift, pure noise, and the kernel that the notes misprint."""
    figure, axes = subplots(1, 3, size=(11.5, 3.2))
    start, span = normal_density(x, mean=-1.5, variance=0.05), torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64)
    carried = fokker_planck(one, lambda x, _: torch.zeros_like(x), start, edges, span)
    spread = fokker_planck(lambda x, _: torch.zeros_like(x), one, heat_kernel(x, 0.05), edges, span / 4 + 0.05)
    for ax, rows, moments in ((axes[0, 0], carried, span), (axes[0, 1], spread, span / 4 + 0.05)):
        for density, t, colour in zip(rows, moments.tolist(), PALETTE, strict=False):
            ax.plot(x, density, color=colour, label=f"t = {t:.3g}")
    for t, colour in zip(span[1:].tolist(), PALETTE, strict=False):
        axes[0, 0].plot(x, normal_density(x, mean=-1.5 + t, variance=0.05), color=FAINT, linestyle="--", linewidth=1)
        wide = torch.linspace(-5, 5, 401)
        axes[0, 2].plot(wide, heat_kernel(wide, t), color=colour, label=f"right, t = {t:g}")
        axes[0, 2].plot(wide, printed_kernel(wide, t), color=colour, linestyle="--", label=f"printed, t = {t:g}")
    axes[0, 0].set(title="μ = 1, σ = 0: transport", xlabel="x")
    axes[0, 1].set(title="μ = 0, σ = 1: heat", xlabel="x")
    axes[0, 2].set(title="the heat kernel", xlabel="x")
    for ax in axes[0]:
        ax.legend(fontsize=8)
        ax.tick_params(colors=INK)
    run.figure(
        "drift and noise alone",
        figure,
        "Left: drift carries the density (dashed: exactly; the solver smears by a cell's width). Middle: noise "
        "widens it. Right: without t in its exponent, as printed, the kernel keeps its width and loses mass.",
    )
