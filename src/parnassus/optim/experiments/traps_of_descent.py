"""Where descent ends: one minimum where f is convex, false minima, saddles and plateaus elsewhere (Zhao sec. 12)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import e
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.func import vmap

from parnassus.atlas import exponent
from parnassus.optim import (
    flat_floor,
    gradient_descent,
    linearisation_error,
    lower_nearby,
    plateau,
    sampled_wave,
    wave,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Run, at_least, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes

covers = ("Z12.1", "Z12.7", "Z12.10")
expected = {
    "values_of_convex_descent": between(1.0, 1.0, "different values at which descent ends, convex function"),
    "values_of_descent_on_the_wave": at_least(3.0, "the same for x cos πx"),
    "shift_of_the_minimum": between(0.05, 0.3, "from the least risk to the least empirical risk"),
    "tangent_exponent": between(1.98, 2.03, "exponent of ε in the error of the tangent to exp at 1"),
    "tangent_factor": between(1.35, 1.37, "that error over ε², near e/2 = 1.359"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"starts": 12}, "gpu": {}}

Curve = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Experiment:
    starts: int = 60  # starts of descent

    def __call__(self, run: Run) -> dict[str, float]:
        result = self.minima(run) | self.landscapes(run) | self.tangent(run)
        run.note(
            "what to see",
            f"From {self.starts} starts descent ends at one value on a convex function, at "
            f"{result['values_of_descent_on_the_wave']:.0f} on x cos πx. The sample's minimum is "
            f"{result['shift_of_the_minimum']:.2f} away from that of the risk.",
        )
        return result

    def minima(self, run: Run) -> dict[str, float]:
        starts = torch.linspace(-2.3, 2.3, self.starts, dtype=torch.float64)[:, None]
        x = torch.linspace(-2.6, 3.4, 601, dtype=torch.float64)[:, None]
        figure, axes = subplots(1, 3, size=(12.5, 3.6))
        ends = {
            "max(|x| − 1, 0)": settled(flat_floor, starts, rate=lambda step: 1.9 * 0.985**step),
            "x cos πx": settled(wave, starts, rate=lambda _: 0.02),
        }
        values = {}
        for ax, (name, last), f in zip(axes[0], ends.items(), (flat_floor, wave), strict=False):
            values[name] = vmap(f)(last)
            ax.plot(x[:, 0], vmap(f)(x), color=PALETTE[0])
            ax.plot(starts[:, 0], vmap(f)(starts), "o", color=FAINT, markersize=3, label="starts")
            ax.plot(last[:, 0], values[name], "o", color=PALETTE[1], markersize=5, label="ends")
            ax.set(title=name, xlabel="x")
        axes[0, 1].legend(loc="lower left")
        draw_proof(axes[0, 2])
        run.figure(
            "where descent ends",
            figure,
            "Left: a convex function may have many minimisers but only one minimum value. Middle: without convexity "
            "the start decides. Right: why; if x₀ is lower than x*, the chord between them pulls down points within "
            "any reach of x*, which then was no local minimum.",
        )
        return {
            "values_of_convex_descent": float(len((50 * values["max(|x| − 1, 0)"]).round().abs().unique())),
            "values_of_descent_on_the_wave": float(len((50 * values["x cos πx"]).round().unique())),
        }

    def landscapes(self, run: Run) -> dict[str, float]:
        figure, axes = subplots(1, 3, size=(12.0, 3.4))
        x = torch.linspace(0.5, 1.5, 2_001, dtype=torch.float64)[:, None]
        best = []
        for name, f, colour in (("risk", wave, PALETTE[0]), ("empirical risk", sampled_wave, PALETTE[1])):
            values = vmap(f)(x)
            least = int(values.argmin())
            axes[0, 0].plot(x[:, 0], values, color=colour, label=name)
            axes[0, 0].plot(x[least], values[least], "o", color=colour)
            best.append(float(x[least, 0]))
        axes[0, 0].set(title="the sample moves the minimum", xlabel="x")
        axes[0, 0].legend(loc="upper center")
        line = torch.linspace(-1, 1, 81)
        heights = line[None, :].square() - line[:, None].square()
        axes[0, 1].contour(line, line, heights, levels=13, cmap="RdBu_r", linewidths=1.2)
        axes[0, 1].plot(0, 0, "o", color=INK)
        axes[0, 1].set(title="a saddle, x² − y²", xlabel="x", ylabel="y", aspect="equal")
        wide = torch.linspace(-2, 5, 200, dtype=torch.float64)[:, None]
        four = torch.tensor([[4.0]], dtype=torch.float64)
        axes[0, 2].plot(wide[:, 0], vmap(plateau)(wide), color=PALETTE[2])
        axes[0, 2].plot(four[:, 0], vmap(plateau)(four), "o", color=INK)
        axes[0, 2].set(title="tanh: slope 0.0013 at 4", xlabel="x")
        run.figure(
            "traps of descent",
            figure,
            "What a sample shows is not what is meant; at a saddle the slope is zero though one can go down; on a "
            "plateau the slope is all but gone.",
        )
        return {"shift_of_the_minimum": abs(best[0] - best[1])}

    def tangent(self, run: Run) -> dict[str, float]:
        one = torch.ones(1, dtype=torch.float64)
        steps = torch.logspace(-4, 0, 17, dtype=torch.float64)
        error = linearisation_error(lambda x: x.exp().sum(), one, steps[:, None])
        figure, axes = subplots(1, 2, size=(10.0, 3.6))
        axes[0, 0].loglog(steps, error, color=PALETTE[0], marker="o", markersize=4, label="exp at 1")
        axes[0, 0].loglog(steps, e / 2 * steps.square(), color=INK, linestyle="--", linewidth=1, label="½ f″ ε²")
        axes[0, 0].set(xlabel="ε", title="error of the tangent")
        axes[0, 0].legend()
        ten = torch.tensor([10.0], dtype=torch.float64)
        for eta, colour in zip((0.05, 0.2, 1.1), PALETTE, strict=False):
            path = gradient_descent(lambda x: x.square().sum(), ten, rate=eta, steps=10)[:, 0]
            axes[0, 1].plot(path, color=colour, marker="o", markersize=4, label=f"η = {eta:g}")
        axes[0, 1].set(xlabel="step", title="descent on x² from 10", ylim=(-35, 35))
        axes[0, 1].legend(loc="lower left")
        run.figure(
            "the tangent and the step",
            figure,
            "Left: the tangent errs by the square of the step. Right: so a small step against the slope goes down; a "
            "step of 1.1, beyond 2/β = 1, does not.",
        )
        tenth = int((steps - 0.01).abs().argmin())
        return {
            "tangent_exponent": exponent(steps[[4, tenth]], error[[4, tenth]]),
            "tangent_factor": float(error[tenth] / steps[tenth].square()),
        }


def settled(f: Curve, starts: Tensor, *, rate: Callable[[int], float]) -> Tensor:
    """Where descent from each start is after 600 steps."""
    return gradient_descent(lambda x: vmap(f)(x).sum(), starts, rate=rate, steps=600)[-1]


def draw_proof(ax: "Axes") -> None:
    """A convex function, the chord from x* down to x₀ and the points that it pulls below x*."""

    def f(x: Tensor) -> Tensor:
        return x.square().sum() / 2

    x = torch.linspace(-0.4, 2.2, 200, dtype=torch.float64)[:, None]
    star, lower = torch.tensor([1.9], dtype=torch.float64), torch.tensor([0.3], dtype=torch.float64)
    ends = torch.stack([star, lower])
    ax.plot(x[:, 0], vmap(f)(x), color=PALETTE[0])
    ax.plot(ends[:, 0], vmap(f)(ends), color=INK, marker="o", markersize=4, linewidth=1.2)
    for reach in (0.8, 0.4, 0.2):
        near = lower_nearby(f, star, lower, reach=reach)
        at = float(near.point)
        ax.plot([at, at], [near.value, near.granted], color=PALETTE[1], marker="o", markersize=4, linewidth=1)
    ax.annotate("x*", (float(star), float(f(star))), xytext=(6, -4), textcoords="offset points")
    ax.annotate("x₀", (float(lower), float(f(lower))), xytext=(0, 8), textcoords="offset points", ha="center")
    ax.set(title="a lower point pulls down", xlabel="x")
