"""How fast Euler's and Maruyama's steps find the solution: path by path and on average (Diehl sec. 5.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.atlas import exponent
from parnassus.diffusion.brownian import ito_sum, refine, stratonovich_sum, wiener
from parnassus.diffusion.euler_maruyama import euler_maruyama, euler_maruyama_path
from parnassus.diffusion.ornstein_uhlenbeck import OrnsteinUhlenbeck
from parnassus.report import FAINT, INK, PALETTE, histograms, subplots
from parnassus.train import Run, between, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("C-24", "C-25")
expected = {
    "strong_order_times_x": between(0.45, 0.6, "power of Δ in the error of a path, noise that grows with X"),
    "strong_order_constant": between(0.95, 1.08, "the same, noise that does not depend on X"),
    "weak_order_times_x": between(0.8, 1.2, "power of Δ in the error of E X, noise that grows with X"),
    "ito_mean": between(-0.03, 0.03, "mean of ∫W dW by left end-points, which is 0"),
    "stratonovich_mean": between(0.46, 0.54, "the same by the mean of both ends, which is ½"),
    "finest_error": reported("root of the mean squared error of a path with the finest steps, noise that grows with X"),
}
profiles = {
    "smoke": {"paths": 2_000, "finest": 6},
    "gpu": {"paths": 400_000, "finest": 10},
}


def growth(x: Tensor, _: Tensor) -> Tensor:
    return x / 2


def half(x: Tensor, _: Tensor) -> Tensor:
    return x / 2


@dataclass(frozen=True)
class Experiment:
    paths: int = 20_000  # paths of the Wiener process
    finest: int = 8  # the finest grid that is compared has 2 to this power steps

    def __call__(self, run: Run) -> dict[str, float]:
        times = torch.linspace(0, 1, 2, dtype=torch.float64, device=run.device)
        noise = wiener(times, (self.paths,))
        grids = [(times, noise)]
        for _ in range(self.finest + 2):
            grids.append(refine(*grids[-1]))
        show_one_path(run, [(times.cpu(), noise[:, :1].cpu()) for times, noise in grids])

        times, noise = grids[-1]
        left, both = ito_sum(noise, noise)[-1], stratonovich_sum(noise, noise)[-1]
        figure = histograms(
            {"left end-points (Itô)": left.clamp(max=4), "mean of both ends (Stratonovich)": both.clamp(max=4)},
            x_label="∫₀¹ W dW",
        )
        run.figure("two integrals", figure, "Where in the step W is taken moves the whole law by ½. Values end at 4.")

        strong, weak = self.errors(grids)
        delta = [2.0**-k for k in range(3, self.finest + 1)]
        run.figure(
            "strong errors",
            orders(delta, strong, {"Δ^½": 0.5, "Δ": 1.0}, "error of a path at t = 1, RMS"),
            "One Wiener path is seen with ever finer steps. Where the noise grows with X, a step misses how the noise "
            "itself changes within it, and the error falls as Δ^½ only.",
        )
        run.figure(
            "weak errors",
            orders(delta, weak, {"Δ": 1.0}, "error of E X at t = 1"),
            "Expectations are easier than paths: their error falls as Δ.",
        )
        run.table("errors", [{"Δ": d, **{n: row[i] for n, row in strong.items()}} for i, d in enumerate(delta)])
        result = {
            "strong_order_times_x": slope(delta, strong["dX = ½X dt + ½X dW"]),
            "strong_order_constant": slope(delta, strong["dX = −X dt + dW"]),
            "weak_order_times_x": slope(delta, weak["dX = ½X dt + ½X dW"]),
            "ito_mean": float(left.mean()),
            "stratonovich_mean": float(both.mean()),
            "finest_error": strong["dX = ½X dt + ½X dW"][-1],
        }
        run.note(
            "what to see",
            f"Path by path the error falls as Δ to the power {result['strong_order_times_x']:.2f} where the noise "
            f"grows with X and {result['strong_order_constant']:.2f} where it is constant; that of the mean as Δ to "
            f"the power {result['weak_order_times_x']:.2f}.",
        )
        return result

    def errors(self, grids: list[tuple[Tensor, Tensor]]) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
        """Errors of paths (RMS) and of means at time 1, for each Δ = 2^−3, …, 2^−finest.

        Both are measured beside the solution along the same W, so that chance largely cancels from the means.
        """
        spring = OrnsteinUhlenbeck()
        times, noise = grids[-1]
        start = torch.ones_like(noise[0])
        truths = {
            "dX = ½X dt + ½X dW": torch.exp(0.375 * times[-1] + noise[-1] / 2),
            "dX = −X dt + dW": euler_maruyama(spring.drift, spring.volatility, start, times, wiener=noise),
        }
        strong: dict[str, list[float]] = {name: [] for name in truths}
        weak: dict[str, list[float]] = {name: [] for name in truths}
        for times, noise in grids[3 : self.finest + 1]:
            ends = {
                "dX = ½X dt + ½X dW": euler_maruyama(growth, half, start, times, wiener=noise),
                "dX = −X dt + dW": euler_maruyama(spring.drift, spring.volatility, start, times, wiener=noise),
            }
            for name, end in ends.items():
                strong[name].append(float((end - truths[name]).square().mean().sqrt()))
                weak[name].append(abs(float((end - truths[name]).mean())))
        return strong, weak


def show_one_path(run: Run, grids: list[tuple[Tensor, Tensor]]) -> None:
    """One Wiener path as it is refined, and the solution that each grid gives beside the true one."""
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    fine_times, fine = grids[-1]
    truth = torch.exp(0.375 * fine_times + fine[:, 0] / 2)
    axes[0, 0].plot(fine_times, fine[:, 0], color=FAINT, linewidth=0.8)
    axes[0, 1].plot(fine_times, truth, color=INK, linewidth=1, label="exact")
    for level, colour in ((2, PALETTE[1]), (4, PALETTE[0])):
        times, noise = grids[level]
        path = torch.stack(list(euler_maruyama_path(growth, half, torch.ones(1).double(), times, wiener=noise)))
        name = f"{2**level} steps"
        axes[0, 0].plot(times, noise[:, 0], color=colour, marker="o", markersize=3, label=name)
        axes[0, 1].plot(times, path[:, 0], color=colour, marker="o", markersize=3, label=name)
    axes[0, 0].set(title="one path of W, seen on two grids", xlabel="t")
    axes[0, 1].set(title="dX = ½X dt + ½X dW along it", xlabel="t")
    for ax in axes[0]:
        ax.legend()
    run.figure(
        "one path",
        figure,
        "Left: points added by Brownian bridges leave the old ones where they are. Right: what the steps make of them.",
    )


def orders(
    delta: list[float], errors: Mapping[str, list[float]], guides: Mapping[str, float], y_label: str
) -> "Figure":
    """Errors against Δ, both axes logarithmic, with dashed lines of the powers they should follow."""
    figure, axes = subplots(size=(6.4, 4.0))
    ax = axes[0, 0]
    for (name, row), colour in zip(errors.items(), PALETTE, strict=False):
        ax.loglog(delta, row, marker="o", markersize=4, color=colour, label=name)
    for (name, power), row in zip(guides.items(), errors.values(), strict=False):
        guide = [1.5 * row[0] * (d / delta[0]) ** power for d in delta]
        ax.loglog(delta, guide, color=FAINT, linestyle="--", linewidth=1)
        ax.annotate(name, (delta[-1], guide[-1]), xytext=(6, 8), textcoords="offset points", ha="left")
    ax.set(xlabel="step Δ", ylabel=y_label)
    ax.legend()
    return figure


def slope(x: list[float], y: list[float]) -> float:
    """The power of x that y follows; an error of exactly 0 counts as one that rounding would leave."""
    return exponent(x, [max(error, 1e-12) for error in y])
