"""Gradient descent failures: local minima, saddle points and plateaus of non-convex functions (Zhao sec. 12)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import e
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.func import vmap

from parnassus.atlas import exponent
from parnassus.optim import (
    cosine_risk,
    empirical_cosine_risk,
    flat_minimum,
    gradient_descent,
    linearisation_error,
    nearby_lower_point,
    tanh_plateau,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Positive, Run, at_least, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes

covers = ("Z12.1", "Z12.7", "Z12.10")
expected = {
    "final_values_convex": between(1.0, 1.0, "number of distinct final values of gradient descent, convex function"),
    "final_values_nonconvex": at_least(3.0, "number of distinct final values of gradient descent, x cos πx"),
    "minimum_shift": between(0.05, 0.3, "distance between the minimisers of risk and empirical risk"),
    "linearisation_exponent": between(1.98, 2.03, "exponent of ε in the linearisation error of exp at 1"),
    "linearisation_factor": between(1.35, 1.37, "ratio of the linearisation error to ε², near e/2 = 1.359"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_starts": 12}, "gpu": {}}

TensorFunction = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Experiment:
    num_starts: Positive[int] = 60  # starting points of gradient descent

    def __call__(self, run: Run) -> dict[str, float]:
        result = self.compare_minima(run) | self.plot_functions(run) | self.measure_linearisation_error(run)
        run.note(
            "results",
            f"From {self.num_starts} starts gradient descent converges to one value on a convex function and to "
            f"{result['final_values_nonconvex']:.0f} values on x cos πx. The minimiser of the empirical risk is "
            f"{result['minimum_shift']:.2f} away from that of the risk.",
        )
        return result

    def compare_minima(self, run: Run) -> dict[str, float]:
        starts = torch.linspace(-2.3, 2.3, self.num_starts, dtype=torch.float64)[:, None]
        x = torch.linspace(-2.6, 3.4, 601, dtype=torch.float64)[:, None]
        figure, axes = subplots(1, 3, size=(12.5, 3.6))
        final = {
            "max(|x| − 1, 0)": final_points(flat_minimum, starts, rate=lambda step: 1.9 * 0.985**step),
            "x cos πx": final_points(cosine_risk, starts, rate=lambda _: 0.02),
        }
        values = {}
        for ax, (name, points), f in zip(axes[0], final.items(), (flat_minimum, cosine_risk), strict=False):
            values[name] = vmap(f)(points)
            ax.plot(x[:, 0], vmap(f)(x), color=PALETTE[0])
            ax.plot(starts[:, 0], vmap(f)(starts), "o", color=FAINT, markersize=3, label="starts")
            ax.plot(points[:, 0], values[name], "o", color=PALETTE[1], markersize=5, label="final points")
            ax.set(title=name, xlabel="x")
        axes[0, 1].legend(loc="lower left")
        plot_proof(axes[0, 2])
        run.figure(
            "final points of gradient descent",
            figure,
            "Left: a convex function may have many minimisers but only one minimum value. Middle: without convexity "
            "the result depends on the start. Right: the proof; if f(x₀) < f(x*), the chord between them bounds f at "
            "points arbitrarily near x* below f(x*), so that x* is not a local minimum.",
        )
        return {
            "final_values_convex": float(len((50 * values["max(|x| − 1, 0)"]).round().abs().unique())),
            "final_values_nonconvex": float(len((50 * values["x cos πx"]).round().unique())),
        }

    def plot_functions(self, run: Run) -> dict[str, float]:
        figure, axes = subplots(1, 3, size=(12.0, 3.4))
        x = torch.linspace(0.5, 1.5, 2_001, dtype=torch.float64)[:, None]
        best = []
        for name, f, colour in (
            ("risk", cosine_risk, PALETTE[0]),
            ("empirical risk", empirical_cosine_risk, PALETTE[1]),
        ):
            values = vmap(f)(x)
            index = int(values.argmin())
            axes[0, 0].plot(x[:, 0], values, color=colour, label=name)
            axes[0, 0].plot(x[index], values[index], "o", color=colour)
            best.append(float(x[index, 0]))
        axes[0, 0].set(title="risk and empirical risk", xlabel="x")
        axes[0, 0].legend(loc="upper center")
        line = torch.linspace(-1, 1, 81)
        heights = line[None, :].square() - line[:, None].square()
        axes[0, 1].contour(line, line, heights, levels=13, cmap="RdBu_r", linewidths=1.2)
        axes[0, 1].plot(0, 0, "o", color=INK)
        axes[0, 1].set(title="saddle point, x² − y²", xlabel="x", ylabel="y", aspect="equal")
        grid = torch.linspace(-2, 5, 200, dtype=torch.float64)[:, None]
        point = torch.tensor([[4.0]], dtype=torch.float64)
        axes[0, 2].plot(grid[:, 0], vmap(tanh_plateau)(grid), color=PALETTE[2])
        axes[0, 2].plot(point[:, 0], vmap(tanh_plateau)(point), "o", color=INK)
        axes[0, 2].set(title="tanh: derivative 0.0013 at 4", xlabel="x")
        run.figure(
            "challenges of optimisation",
            figure,
            "Left: sampling shifts the minimum of the risk. Middle: at a saddle point the gradient is zero without a "
            "minimum. Right: on a plateau the gradient almost vanishes.",
        )
        return {"minimum_shift": abs(best[0] - best[1])}

    def measure_linearisation_error(self, run: Run) -> dict[str, float]:
        one = torch.ones(1, dtype=torch.float64)
        steps = torch.logspace(-4, 0, 17, dtype=torch.float64)
        error = linearisation_error(lambda x: x.exp().sum(), one, steps[:, None])
        figure, axes = subplots(1, 2, size=(10.0, 3.6))
        axes[0, 0].loglog(steps, error, color=PALETTE[0], marker="o", markersize=4, label="exp at 1")
        axes[0, 0].loglog(steps, e / 2 * steps.square(), color=INK, linestyle="--", linewidth=1, label="½ f″ ε²")
        axes[0, 0].set(xlabel="ε", title="linearisation error")
        axes[0, 0].legend()
        ten = torch.tensor([10.0], dtype=torch.float64)
        for eta, colour in zip((0.05, 0.2, 1.1), PALETTE, strict=False):
            path = gradient_descent(lambda x: x.square().sum(), ten, learning_rate=eta, steps=10)[:, 0]
            axes[0, 1].plot(path, color=colour, marker="o", markersize=4, label=f"η = {eta:g}")
        axes[0, 1].set(xlabel="step", title="gradient descent on x² from 10", ylim=(-35, 35))
        axes[0, 1].legend(loc="lower left")
        run.figure(
            "linearisation error",
            figure,
            "Left: the linearisation error is quadratic in the step. Right: hence small gradient steps decrease the "
            "function; a learning rate of 1.1, above 2/β = 1, does not.",
        )
        tenth = int((steps - 0.01).abs().argmin())
        return {
            "linearisation_exponent": exponent(steps[[4, tenth]], error[[4, tenth]]),
            "linearisation_factor": float(error[tenth] / steps[tenth].square()),
        }


def final_points(f: TensorFunction, starts: Tensor, *, rate: Callable[[int], float]) -> Tensor:
    """The points that gradient descent reaches from each start in 600 steps."""
    return gradient_descent(lambda x: vmap(f)(x).sum(), starts, learning_rate=rate, steps=600)[-1]


def plot_proof(ax: "Axes") -> None:
    """Plot a convex function, the chord from x* to x₀ and points near x* whose values the chord bounds."""

    def f(x: Tensor) -> Tensor:
        return x.square().sum() / 2

    x = torch.linspace(-0.4, 2.2, 200, dtype=torch.float64)[:, None]
    star, lower = torch.tensor([1.9], dtype=torch.float64), torch.tensor([0.3], dtype=torch.float64)
    ends = torch.stack([star, lower])
    ax.plot(x[:, 0], vmap(f)(x), color=PALETTE[0])
    ax.plot(ends[:, 0], vmap(f)(ends), color=INK, marker="o", markersize=4, linewidth=1.2)
    for radius in (0.8, 0.4, 0.2):
        near = nearby_lower_point(f, star, lower, radius=radius)
        position = float(near.point)
        ax.plot([position, position], [near.value, near.bound], color=PALETTE[1], marker="o", markersize=4, linewidth=1)
    ax.annotate("x*", (float(star), float(f(star))), xytext=(6, -4), textcoords="offset points")
    ax.annotate("x₀", (float(lower), float(f(lower))), xytext=(0, 8), textcoords="offset points", ha="center")
    ax.set(title="local minima are global", xlabel="x")
