"""Seven optimisers race down five surfaces, each at its best rate (book secs. 3.2-3.3)."""

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
    race,
    rosenbrock,
    saddle,
    valley,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("B3.2-1", "B3.2-2", "B3.2-3", "B3.3-3", "B3.3-4", "B3.3-6", "C-06", "D1.5.1", "D1.5.3", "D1.5.6", "D1.5.7")
expected = {
    "zigzag_share": between(1, 1, "share of steps that cross the narrow valley at η = 1.8/β"),
    "descent_steps_in_the_valley": at_least(150, "steps of gradient descent down the narrow valley"),
    "momentum_steps_in_the_valley": at_most(100, "steps of momentum 0.9 there"),
    "descent_steps_on_rosenbrock": at_least(300, "steps of gradient descent along the curved valley"),
    "best_steps_on_rosenbrock": at_most(250, "steps of the best first-order method there"),
    "newton_steps_on_rosenbrock": at_most(10, "steps of Newton's method there"),
    "newton_gap_at_the_saddle": between(0.99, 1.01, "what is left to gain where Newton's method stops"),
    "parabola_error": at_most(1e-12, "distance of descent on x² from (−0.8)ᵗ x₀"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 40, "rates": 3}, "gpu": {}}

RACERS: dict[str, Callable[..., Optimizer]] = {
    "gradient descent": SGD,
    "momentum": partial(Momentum, momentum=0.9),
    "Nesterov": Nesterov,
    "AdaGrad": AdaGrad,
    "RMSProp": RMSProp,
    "Adam": Adam,
}
SURFACES = {
    "narrow valley": valley(50.0),
    "Rosenbrock": rosenbrock(),
    "Beale": beale(),
    "Himmelblau": himmelblau(),
    "saddle": saddle(),
}


@dataclass(frozen=True)
class Result:
    """The best walk of one optimiser: its rate, its path, and the step from which it stays near the least value."""

    rate: float
    path: Tensor
    gaps: Tensor
    arrived: int | None

    @property
    def shown(self) -> Tensor:
        return self.path if self.arrived is None else self.path[: self.arrived + 1]


@dataclass(frozen=True)
class Experiment:
    steps: int = 600  # steps that each walk may take
    rates: int = 14  # learning rates tried for each, from 10⁻⁴ to 2 by equal factors
    gap: float = 1e-3  # a walk has arrived when it stays this near to the least value

    def __call__(self, run: Run) -> dict[str, float]:
        crossings = self.draw_zigzag(run)
        results = {place: self.tuned(surface) for place, surface in SURFACES.items()}
        run.figure(
            "paths",
            draw_paths(results),
            "Each optimiser from the same start (dot) at the rate that brings it first to within "
            f"{self.gap:g} of the least value; stars are the minimisers. Contours are equally spaced in the logarithm.",
        )
        run.figure("how fast", draw_gaps(results), "What is left to gain after each step, at the same rates.")
        run.table(
            "steps",
            [
                {"surface": place, **{name: said(result) for name, result in runners.items()}}
                for place, runners in results.items()
            ],
            f"Steps until the value stays within {self.gap:g} of the least, with the rate; – where {self.steps} were "
            "not enough at any rate.",
        )
        error = self.draw_parabola(run)
        here, curved, ridge = results["narrow valley"], results["Rosenbrock"], results["saddle"]
        first_order = {name: result for name, result in curved.items() if name != "Newton"}
        best = min(first_order, key=lambda name: self.taken(first_order[name]))
        run.note(
            "what to see",
            f"In the narrow valley momentum takes {self.taken(here['momentum'])} steps where descent takes "
            f"{self.taken(here['gradient descent'])}. Along Rosenbrock's curved floor {best} is the best of those that "
            f"see only gradients, with {self.taken(curved[best])} steps; Newton, who sees curvature, takes "
            f"{self.taken(curved['Newton'])}. But at the saddle Newton's method walks onto the very point that all "
            "others leave: it looks for a place without slope, not for a low one.\n\n"
            "No optimiser wins everywhere, and the best rate of one is no rate for another: compare what is tuned.",
        )
        return {
            "zigzag_share": crossings,
            "descent_steps_in_the_valley": self.taken(here["gradient descent"]),
            "momentum_steps_in_the_valley": self.taken(here["momentum"]),
            "descent_steps_on_rosenbrock": self.taken(curved["gradient descent"]),
            "best_steps_on_rosenbrock": self.taken(curved[best]),
            "newton_steps_on_rosenbrock": self.taken(curved["Newton"]),
            "newton_gap_at_the_saddle": float(ridge["Newton"].gaps[-1]),
            "parabola_error": error,
        }

    def tuned(self, surface: Surface) -> dict[str, Result]:
        """Every racer at its best rate, and Newton's method, which needs none."""
        start = torch.tensor(surface.start, dtype=torch.float64)
        rates = torch.logspace(-4, 0.3, self.rates, dtype=torch.float64).tolist()
        results = {}
        for name, racer in RACERS.items():
            paths = race(surface, start, [partial(racer, lr=rate) for rate in rates], steps=self.steps)
            tried = [self.result(surface, rate, path) for rate, path in zip(rates, paths, strict=True)]
            results[name] = min(tried, key=self.score)
        path = newton_descent(surface, start, steps=min(self.steps, 40))
        return results | {"Newton": self.result(surface, 1.0, path)}

    def result(self, surface: Surface, rate: float, path: Tensor) -> Result:
        gaps = (surface(path) - surface.least).nan_to_num(torch.inf)
        away = (gaps > self.gap).nonzero()[:, 0]
        last = int(away[-1]) if len(away) else -1
        return Result(rate, path, gaps, None if last == len(path) - 1 else last + 1)

    def score(self, result: Result) -> float:
        """Steps until it arrived; of walks that did not, those that end lower are better."""
        return self.taken(result) + (0.0 if result.arrived is not None else float(result.gaps[-1]))

    def taken(self, result: Result) -> int:
        return self.steps if result.arrived is None else result.arrived

    def draw_zigzag(self, run: Run) -> float:
        """Fig. 3.1: descent near its largest rate, and what momentum makes of it."""
        surface, beta = valley(20.0), 20.0
        start = torch.tensor(surface.start, dtype=torch.float64)
        paths = {
            "gradient descent, η = 1.8/β": gradient_descent(surface, start, rate=1.8 / beta, steps=40),
            "momentum 0.7, η = 1/β": heavy_ball(surface, start, rate=1 / beta, momentum=0.7, steps=40),
            "Nesterov, η = 1/β": nesterov_descent(surface, start, rate=1 / beta, steps=40).w,
        }
        figure, axes = subplots(size=(8.4, 4.4))
        draw_surface(axes[0, 0], surface)
        for (name, path), colour in zip(paths.items(), PALETTE, strict=False):
            axes[0, 0].plot(path[:, 0], path[:, 1], color=colour, marker="o", markersize=3, linewidth=1.4, label=name)
        axes[0, 0].set(xlabel="θ₁, the flat direction", ylabel="θ₂, the steep one")
        axes[0, 0].legend(loc="lower right")
        run.figure(
            "zigzag",
            figure,
            "Between 1/β and 2/β descent crosses the valley with every step and creeps along it; momentum averages the "
            "crossings away and adds up the way along (book fig. 3.1).",
        )
        steep = paths["gradient descent, η = 1.8/β"][:, 1]
        return float((steep[1:] * steep[:-1] < 0).double().mean())

    def draw_parabola(self, run: Run) -> float:
        """Descent on x² from 5.1 with rates on both sides of what is allowed."""
        start = torch.tensor(5.1, dtype=torch.float64)
        paths = {rate: gradient_descent(torch.square, start, rate=rate, steps=15) for rate in (0.1, 0.9, 1.02)}
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
            "on a parabola",
            figure,
            "Fifteen steps from 5.1. Up to η = ½ descent comes from one side, up to 1 it swings and settles, beyond it "
            "swings away (Diehl sec. 1.5).",
        )
        exact = 5.1 * (-0.8) ** torch.arange(16, dtype=torch.float64)
        return float((paths[0.9] - exact).abs().max())


def said(result: Result) -> str:
    taken = "–" if result.arrived is None else f"{result.arrived}"
    return f"{taken} ({result.rate:.2g})"


def draw_surface(ax: "Axes", surface: Surface) -> None:
    """Contours equally spaced in the logarithm of what is left to gain, the start and the minimisers."""
    across, up, levels = surface.levels()
    heights = (levels - surface.least).clamp(min=1e-6).log()
    ax.contour(
        across,
        up,
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
    ax.set(xlim=surface.across, ylim=surface.up)
    ax.grid(visible=False)


def draw_paths(results: dict[str, dict[str, Result]]) -> "Figure":
    figure, axes = subplots(2, 3, size=(12.0, 7.6))
    for ax, (place, runners) in zip(axes.flat, results.items(), strict=False):
        draw_surface(ax, SURFACES[place])
        for (name, result), colour in zip(runners.items(), PALETTE, strict=False):
            if isfinite(float(result.gaps[-1])):
                way = result.shown
                ax.plot(way[:, 0], way[:, 1], color=colour, linewidth=1.5, marker="o", markersize=2, label=name)
        ax.set_title(place)
    legend_aside(axes[1, 2], axes[0, 0])
    return figure


def draw_gaps(results: dict[str, dict[str, Result]]) -> "Figure":
    figure, axes = subplots(2, 3, size=(12.0, 6.4))
    for ax, (place, runners) in zip(axes.flat, results.items(), strict=False):
        for (name, result), colour in zip(runners.items(), PALETTE, strict=False):
            ax.semilogy(result.gaps.clamp(1e-12, 1e6), color=colour, label=name, linewidth=1.5)
        ax.set(title=place, xlabel="step", ylabel="above the least value", ylim=(1e-8, None))
    legend_aside(axes[1, 2], axes[0, 0])
    return figure


def legend_aside(empty: "Axes", drawn: "Axes") -> None:
    """The legend of `drawn` in the place of an axes that is left over."""
    empty.set_axis_off()
    empty.legend(*drawn.get_legend_handles_labels(), loc="center", fontsize=11)
