"""Optimisers on test surfaces: seven methods, five surfaces, each at its best learning rate (book secs. 3.2-3.3)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import Optimizer

from parnassus.optim import (
    SGD,
    AdaGrad,
    Adam,
    Momentum,
    Nesterov,
    RMSProp,
    Surface,
    beale,
    gradient_descent,
    heavy_ball,
    himmelblau,
    nesterov_descent,
    newton_descent,
    optimizer_trajectories,
    quadratic_valley,
    rosenbrock,
    saddle,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Positive, Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("B3.2-1", "B3.2-2", "B3.2-3", "B3.3-3", "B3.3-4", "B3.3-6", "C-06", "D1.5.1", "D1.5.3", "D1.5.6", "D1.5.7")
expected = {
    "zigzag_fraction": between(1, 1, "fraction of gradient descent steps that cross the narrow valley at η = 1.8/β"),
    "gradient_descent_steps_valley": at_least(150, "steps of gradient descent to converge in the narrow valley"),
    "momentum_steps_valley": at_most(100, "steps of momentum 0.9 to converge in the narrow valley"),
    "gradient_descent_steps_rosenbrock": at_least(
        300, "steps of gradient descent to converge on the Rosenbrock function"
    ),
    "best_steps_rosenbrock": at_most(250, "steps of the best first-order method on the Rosenbrock function"),
    "newton_steps_rosenbrock": at_most(10, "steps of Newton's method on the Rosenbrock function"),
    "newton_suboptimality_saddle": between(0.99, 1.01, "C − min C where Newton's method stops on the saddle surface"),
    "parabola_error": at_most(1e-12, "maximum distance between gradient descent on x² and (−0.8)ᵗ x₀"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"max_steps": 40, "num_learning_rates": 3}, "gpu": {}}

OPTIMISERS: dict[str, Callable[..., Optimizer]] = {
    "gradient descent": SGD,
    "momentum": partial(Momentum, momentum=0.9),
    "Nesterov": Nesterov,
    "AdaGrad": AdaGrad,
    "RMSProp": RMSProp,
    "Adam": Adam,
}
SURFACES = {
    "narrow valley": quadratic_valley(50.0),
    "Rosenbrock": rosenbrock(),
    "Beale": beale(),
    "Himmelblau": himmelblau(),
    "saddle": saddle(),
}


@dataclass(frozen=True)
class OptimiserRun:
    """A run of one optimiser with its learning rate, values C − min C, and first step of convergence."""

    learning_rate: float
    path: Tensor
    gaps: Tensor
    converged_at: int | None

    @property
    def visible_path(self) -> Tensor:
        return self.path if self.converged_at is None else self.path[: self.converged_at + 1]


@dataclass(frozen=True)
class Experiment:
    max_steps: Positive[int] = 600  # maximum number of steps of each optimiser
    num_learning_rates: Positive[int] = 14  # learning rates of the search, from 10⁻⁴ to 2 in geometric progression
    tolerance: Positive[float] = 1e-3  # converged when the value stays within this of the minimum

    def __call__(self, run: Run) -> dict[str, float]:
        zigzag_fraction = self.plot_zigzag(run)
        results = {name: self.tune_learning_rates(surface) for name, surface in SURFACES.items()}
        run.figure(
            "paths",
            plot_paths(results),
            "Each optimiser from the same start (dot) at the learning rate that first brings it within "
            f"{self.tolerance:g} of the minimum; stars are the minimisers. Contour levels are equally spaced in "
            "log(C − min C).",
        )
        run.figure("convergence", plot_gaps(results), "C − min C after each step, at the same learning rates.")
        run.table(
            "steps",
            [
                {"surface": name, **{optimiser: format_run(each) for optimiser, each in runs.items()}}
                for name, runs in results.items()
            ],
            f"Steps until the value stays within {self.tolerance:g} of the minimum, with the learning rate; – if no "
            f"learning rate converges in {self.max_steps} steps.",
        )
        error = self.plot_parabola(run)
        narrow, curved, saddle_runs = results["narrow valley"], results["Rosenbrock"], results["saddle"]
        first_order = {name: each for name, each in curved.items() if name != "Newton"}
        best = min(first_order, key=lambda name: self.count_steps(first_order[name]))
        run.note(
            "results",
            f"In the narrow valley momentum takes {self.count_steps(narrow['momentum'])} steps and gradient descent "
            f"{self.count_steps(narrow['gradient descent'])}. On the Rosenbrock function {best} is the best "
            f"first-order method, with {self.count_steps(curved[best])} steps; Newton's method takes "
            f"{self.count_steps(curved['Newton'])}. On the saddle surface Newton's method converges to the saddle "
            "point, which all others leave: it finds stationary points, not minima.\n\n"
            "No optimiser is best on every surface, and each needs its own learning rate: compare tuned optimisers.",
        )
        return {
            "zigzag_fraction": zigzag_fraction,
            "gradient_descent_steps_valley": self.count_steps(narrow["gradient descent"]),
            "momentum_steps_valley": self.count_steps(narrow["momentum"]),
            "gradient_descent_steps_rosenbrock": self.count_steps(curved["gradient descent"]),
            "best_steps_rosenbrock": self.count_steps(curved[best]),
            "newton_steps_rosenbrock": self.count_steps(curved["Newton"]),
            "newton_suboptimality_saddle": float(saddle_runs["Newton"].gaps[-1]),
            "parabola_error": error,
        }

    def tune_learning_rates(self, surface: Surface) -> dict[str, OptimiserRun]:
        """Every optimiser at its best learning rate, and Newton's method with rate 1."""
        start = torch.tensor(surface.start, dtype=torch.float64)
        rates = torch.logspace(-4, 0.3, self.num_learning_rates, dtype=torch.float64).tolist()
        results = {}
        for name, optimiser in OPTIMISERS.items():
            factories = [partial(optimiser, lr=rate) for rate in rates]
            paths = optimizer_trajectories(surface, start, factories, steps=self.max_steps)
            runs = [self.evaluate_run(surface, rate, path) for rate, path in zip(rates, paths, strict=True)]
            results[name] = min(runs, key=self.score)
        path = newton_descent(surface, start, steps=min(self.max_steps, 40))
        return results | {"Newton": self.evaluate_run(surface, 1.0, path)}

    def evaluate_run(self, surface: Surface, rate: float, path: Tensor) -> OptimiserRun:
        gaps = (surface(path) - surface.minimum).nan_to_num(torch.inf)
        outside = (gaps > self.tolerance).nonzero()[:, 0]
        last = int(outside[-1]) if len(outside) else -1
        return OptimiserRun(rate, path, gaps, None if last == len(path) - 1 else last + 1)

    def score(self, result: OptimiserRun) -> float:
        """Steps until convergence; runs that did not converge are ordered by their last value."""
        return self.count_steps(result) + (0.0 if result.converged_at is not None else float(result.gaps[-1]))

    def count_steps(self, result: OptimiserRun) -> int:
        return self.max_steps if result.converged_at is None else result.converged_at

    def plot_zigzag(self, run: Run) -> float:
        """Plot fig. 3.1: gradient descent near its largest stable rate, momentum and Nesterov."""
        surface, beta = quadratic_valley(20.0), 20.0
        start = torch.tensor(surface.start, dtype=torch.float64)
        paths = {
            "gradient descent, η = 1.8/β": gradient_descent(surface, start, learning_rate=1.8 / beta, steps=40),
            "momentum 0.7, η = 1/β": heavy_ball(surface, start, learning_rate=1 / beta, momentum=0.7, steps=40),
            "Nesterov, η = 1/β": nesterov_descent(surface, start, learning_rate=1 / beta, steps=40).w,
        }
        figure, axes = subplots(size=(8.4, 4.4))
        plot_surface(axes[0, 0], surface)
        for (name, path), colour in zip(paths.items(), PALETTE, strict=False):
            axes[0, 0].plot(path[:, 0], path[:, 1], color=colour, marker="o", markersize=3, linewidth=1.4, label=name)
        axes[0, 0].set(xlabel="θ₁, low curvature", ylabel="θ₂, high curvature")
        axes[0, 0].legend(loc="lower right")
        run.figure(
            "zigzag",
            figure,
            "For 1/β < η < 2/β gradient descent crosses the valley at every step and moves slowly along it; momentum "
            "averages the oscillation out and accumulates the motion along the valley (book fig. 3.1).",
        )
        theta_2 = paths["gradient descent, η = 1.8/β"][:, 1]
        return float((theta_2[1:] * theta_2[:-1] < 0).double().mean())

    def plot_parabola(self, run: Run) -> float:
        """Plot gradient descent on x² from 5.1 at learning rates below and above the stability limit."""
        start = torch.tensor(5.1, dtype=torch.float64)
        paths = {rate: gradient_descent(torch.square, start, learning_rate=rate, steps=15) for rate in (0.1, 0.9, 1.02)}
        figure, axes = subplots(1, 3, size=(10.0, 3.6))
        x = torch.linspace(-7.5, 7.5, 200)
        for ax, (rate, path) in zip(axes[0], paths.items(), strict=True):
            ax.plot(x, x.square(), color=FAINT)
            ax.plot(path, path.square(), color=PALETTE[0], marker="o", markersize=4, linewidth=1)
            ax.plot(path[:1], path[:1].square(), color=PALETTE[1], marker="o", markersize=7)
            factor = f"{1 - 2 * rate:.3g}".replace("-", "−")
            ax.set(title=f"η = {rate:g}: x_t = ({factor})ᵗ x₀", xlabel="x", ylim=(-2, 58))
        axes[0, 0].set_ylabel("x²")
        run.figure(
            "gradient descent on a parabola",
            figure,
            "Fifteen steps from 5.1. For η ≤ ½ gradient descent converges monotonically, for ½ < η < 1 it oscillates "
            "and converges, for η > 1 it diverges (Diehl sec. 1.5).",
        )
        exact = 5.1 * (-0.8) ** torch.arange(16, dtype=torch.float64)
        return float((paths[0.9] - exact).abs().max())


def format_run(result: OptimiserRun) -> str:
    steps = "–" if result.converged_at is None else f"{result.converged_at}"
    return f"{steps} ({result.learning_rate:.2g})"


def plot_surface(ax: "Axes", surface: Surface) -> None:
    """Plot contours equally spaced in log(C − min C), the start and the minimisers."""
    x_grid, y_grid, values = surface.evaluate_grid()
    heights = (values - surface.minimum).clamp(min=1e-6).log()
    ax.contour(
        x_grid,
        y_grid,
        heights,
        levels=torch.linspace(-2.5, float(heights.max()), 14).tolist(),
        colors=FAINT,
        linewidths=0.7,
        linestyles="solid",
        alpha=0.7,
    )
    for x, y in surface.minimisers:
        ax.plot(x, y, marker="*", markersize=11, color=INK, linestyle="none", zorder=5)
    ax.plot(*surface.start, marker="o", markersize=6, color=INK, linestyle="none", zorder=5)
    ax.set(xlim=surface.x_range, ylim=surface.y_range)
    ax.grid(visible=False)


def plot_paths(results: dict[str, dict[str, OptimiserRun]]) -> "Figure":
    figure, axes = subplots(2, 3, size=(12.0, 7.6))
    for ax, (surface, runs) in zip(axes.flat, results.items(), strict=False):
        plot_surface(ax, SURFACES[surface])
        for (name, result), colour in zip(runs.items(), PALETTE, strict=False):
            if isfinite(float(result.gaps[-1])):
                ax.plot(*result.visible_path.T, color=colour, linewidth=1.5, marker="o", markersize=2, label=name)
        ax.set_title(surface)
    place_legend(axes[1, 2], axes[0, 0])
    return figure


def plot_gaps(results: dict[str, dict[str, OptimiserRun]]) -> "Figure":
    figure, axes = subplots(2, 3, size=(12.0, 6.4))
    for ax, (surface, runs) in zip(axes.flat, results.items(), strict=False):
        for (name, result), colour in zip(runs.items(), PALETTE, strict=False):
            ax.semilogy(result.gaps.clamp(1e-12, 1e6), color=colour, label=name, linewidth=1.5)
        ax.set(title=surface, xlabel="step", ylabel="C − min C", ylim=(1e-8, None))
    place_legend(axes[1, 2], axes[0, 0])
    return figure


def place_legend(empty: "Axes", source: "Axes") -> None:
    """Put the legend of `source` into unused axes."""
    empty.set_axis_off()
    empty.legend(*source.get_legend_handles_labels(), loc="center", fontsize=11)
